//go:build !amd64

package search

func dot(a, b *unitVector) int32 { return dotGeneric(a, b) }

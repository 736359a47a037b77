//go:build !amd64

package search

func dot(a, b *direction) int32 { return slowDot(a, b) }

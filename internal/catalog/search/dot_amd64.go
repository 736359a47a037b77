package search

// dot returns the sum of the products of the components of a and b. It computes 16 products at a time with SSE2, which
// every amd64 processor supports. This takes a quarter of the time of the Go code.
//
//go:noescape
func dot(a, b *unitVector) int32

package search

// Dimensions is the length of a vector.
const Dimensions = 128

// unitVector is a vector of length 127 with integer components. It is zero for an empty text.
type unitVector [Dimensions]int8

// dotGeneric is dot in Go. Four sums at a time take half as long as one.
//
//lint:ignore U1000 systems without the assembly use it, and tests compare with it
func dotGeneric(a, b *unitVector) int32 {
	var s0, s1, s2, s3 int32
	for i := 0; i <= len(a)-4; i += 4 {
		s0 += int32(a[i]) * int32(b[i])
		s1 += int32(a[i+1]) * int32(b[i+1])
		s2 += int32(a[i+2]) * int32(b[i+2])
		s3 += int32(a[i+3]) * int32(b[i+3])
	}
	return s0 + s1 + s2 + s3
}

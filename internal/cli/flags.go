package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// boundedIntFlag is a flag with a number from 1 to max.
type boundedIntFlag struct {
	value *int
	max   int
}

// String formats the value. String, Set and Type implement pflag.Value.
func (f *boundedIntFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.Itoa(*f.value)
}

func (f *boundedIntFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > f.max {
		return fmt.Errorf("must be at least 1 and at most %d", f.max)
	}
	*f.value = n
	return nil
}

func (f *boundedIntFlag) Type() string { return "int" }

// positiveDurationFlag is a flag with a positive duration.
type positiveDurationFlag time.Duration

// String formats the value. String, Set and Type implement pflag.Value.
func (f *positiveDurationFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

func (f *positiveDurationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("must be a duration longer than 0, such as 500ms, 30s, 2m or 1h")
	}
	*f = positiveDurationFlag(d)
	return nil
}

func (f *positiveDurationFlag) Type() string { return "duration" }

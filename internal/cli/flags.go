package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// atMostFlag is a flag with a number from 1 to most.
type atMostFlag struct {
	to   *int
	most int
}

// String, Set and Type implement pflag.Value.
func (f *atMostFlag) String() string {
	if f.to == nil {
		return ""
	}
	return strconv.Itoa(*f.to)
}

func (f *atMostFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > f.most {
		return fmt.Errorf("must be at least 1 and at most %d", f.most)
	}
	*f.to = n
	return nil
}

func (f *atMostFlag) Type() string { return "int" }

// waitFlag is a flag with a positive duration.
type waitFlag time.Duration

// String, Set and Type implement pflag.Value.
func (f *waitFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

func (f *waitFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("must be a duration longer than 0, such as 500ms, 30s, 2m or 1h")
	}
	*f = waitFlag(d)
	return nil
}

func (f *waitFlag) Type() string { return "duration" }

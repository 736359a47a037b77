package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/internal/testutil/faultfs"
	"mcpproxy/internal/testutil/faultrun"
)

// benchFaults runs each fault scenario o.rounds times, and prints the number of lost calls.
func benchFaults(o options) error {
	if err := faultfs.CheckAvailable(); err != nil {
		return fmt.Errorf("file systems cannot be mounted here: %w", err)
	}
	dir, err := os.MkdirTemp("", "mcpproxy-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := o.binary
	if binary == "" {
		if binary, err = buildBinary(dir); err != nil {
			return err
		}
	}
	seed := o.seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano() % 1_000_000)
	}
	fmt.Printf("seed %d (-seed %d -rounds %d replays it)\n", seed, seed, o.rounds)
	fmt.Printf("%-52s %4s %8s %8s %8s %6s %7s %6s %8s %8s\n", "fault", "runs", "acked", "refused", "reached", "lost", "doubled", "wrong", "noticed", "back")
	bad := false
	for _, s := range faultrun.Scenarios() {
		if !strings.Contains(s.Name, o.only) {
			continue
		}
		sum := faultrun.Report{}
		for i := range uint64(o.rounds) {
			r, err := faultrun.RunScenario(context.Background(), s, faultrun.Options{
				Binary: binary, Dir: filepath.Join(dir, "run"), Seed: seed + i, Clients: 16,
			})
			if err != nil {
				fmt.Printf("%s, seed %d: %v\n", s.Name, seed+i, err)
				bad = true
				continue
			}
			if !r.IsGood() {
				bad = true
				fmt.Printf("%s, seed %d:\n  %s\n", s.Name, seed+i, strings.Join(r.Problems, "\n  "))
				if o.verbose {
					fmt.Println(r.Said)
				}
			}
			sum.Add(r)
		}
		fmt.Printf("%-52s %4d %8d %8d %8d %6d %7d %6d %8s %8s\n", s.Name, o.rounds, sum.Acknowledged, sum.Refused, sum.Reached,
			sum.Lost, sum.Doubled, sum.Wrong, formatShortDuration(sum.Noticed), formatShortDuration(sum.Back))
	}
	if bad {
		return errors.New("something was lost, doubled or wrong")
	}
	return nil
}

func formatShortDuration(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return d.Round(10 * time.Millisecond).String()
}

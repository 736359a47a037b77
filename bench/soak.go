package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// soakEvery is the interval between two readings of the metrics.
const soakEvery = 10 * time.Second

// heldMetrics are the metrics that must not grow with time. Allocated memory swings between collections, and next_gc follows
// from the memory that the last collection left.
var heldMetrics = []string{"go_memstats_heap_alloc_bytes", "go_memstats_next_gc_bytes", "go_goroutines", "process_open_fds", "process_resident_memory_bytes"}

// benchSoak makes calls at a steady rate for -duration, and prints the means of heldMetrics in
// the first and in the last quarter.
func benchSoak(o options, dir, binary string) error {
	upstream, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	proxy, subjects, err := startProxyTargets(binary, filepath.Join(dir, "soak"), "http://"+upstream.addr+"/mcp")
	if proxy != nil {
		defer proxy.stop()
	}
	if err != nil {
		return err
	}
	called := make(chan error, 1)
	go func() {
		cpu, err := callAtSteadyRate(subjects[0], o.duration)
		if err == nil {
			fmt.Printf("%d calls a second, %s of processor time each\n", eventRate, formatMicroseconds(cpu))
		}
		called <- err
	}()
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	var seen []map[string]float64
	for began := time.Now(); ; {
		select {
		case err := <-called:
			if err == nil && len(seen) < 4 {
				err = errors.New("that was too short: a quarter has less than one look")
			}
			if err == nil {
				compareQuarters(seen)
			}
			return err
		case <-tick.C:
			now, err := fetchHeldMetrics(proxy.addr)
			if err != nil {
				return err
			}
			seen = append(seen, now)
			if o.verbose {
				fmt.Printf("%4.0f s: %v\n", time.Since(began).Seconds(), now)
			}
		}
	}
}

// fetchHeldMetrics reads the heldMetrics from /metrics.
func fetchHeldMetrics(addr string) (map[string]float64, error) {
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		for _, name := range heldMetrics {
			if value, ok := strings.CutPrefix(line, name+" "); ok {
				if found[name], err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(found) < len(heldMetrics) {
		return nil, fmt.Errorf("/metrics has only %v", found)
	}
	return found, nil
}

func compareQuarters(seen []map[string]float64) {
	quarter := len(seen) / 4
	for _, name := range heldMetrics {
		mean := func(of []map[string]float64) (sum float64) {
			for _, one := range of {
				sum += one[name]
			}
			return sum / float64(len(of))
		}
		first, last := mean(seen[:quarter]), mean(seen[len(seen)-quarter:])
		fmt.Printf("%-32s first quarter %14.1f, last %14.1f: %+.1f %%\n", name, first, last, 100*(last/first-1))
	}
}

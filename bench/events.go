package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const eventRate = 500 // calls in a second

// eventStreams are event streams that stay open while calls are made. Streams that
// no one reads stall when the buffers in between are full.
type eventStreams struct {
	count int
	read  bool
}

func (l eventStreams) String() string {
	if l.read {
		return fmt.Sprintf("%2d streams of events", l.count)
	}
	return fmt.Sprintf("%2d streams that nobody reads", l.count)
}

// benchEvents measures what event streams cost with none, one and twenty streams, and with twenty streams that no one reads. It
// prints the CPU time of MCPProxy for a call at a steady rate, and its memory.
func benchEvents(o options, dir, binary string) error {
	upstream, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	own := filepath.Join(dir, "events")
	proxy, subjects, err := startProxyTargets(binary, own, "http://"+upstream.addr+"/mcp")
	if proxy != nil {
		defer proxy.stop()
	}
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(own, "data", "api_key"))
	if err != nil {
		return err
	}
	streams := []eventStreams{{0, true}, {1, true}, {20, true}, {20, false}}
	used, memory := map[eventStreams][]time.Duration{}, map[eventStreams][]float64{}
	for round := range o.rounds {
		for i := range streams {
			l := streams[(i+round)%len(streams)]
			read, stop, err := openEventStreams("http://"+proxy.addr+"/api/v1/events", strings.TrimSpace(string(key)), l)
			if err != nil {
				return err
			}
			cpu, err := callAtSteadyRate(subjects[0], o.duration)
			size := proxy.residentMemory()
			stop()
			if err != nil {
				return err
			}
			used[l], memory[l] = append(used[l], cpu), append(memory[l], size)
			if o.verbose {
				fmt.Printf("  round %d, %s: %s a call, %.1f MiB, %d bytes read\n", round+1, l, formatMicroseconds(cpu), size, *read)
			}
		}
	}
	fmt.Printf("%d calls a second through /mcp to a server over HTTP, %d rounds of %s: processor time of MCPProxy for a call, and its memory\n", eventRate, o.rounds, o.duration)
	none := streams[0]
	for _, l := range streams {
		var more, larger []float64
		for i := range used[l] {
			more = append(more, 100*(float64(used[l][i])/float64(used[none][i])-1))
			larger = append(larger, memory[l][i]-memory[none][i])
		}
		sorted := slices.Sorted(slices.Values(used[l]))
		slices.Sort(more)
		slices.Sort(larger)
		fmt.Printf("%-28s %s; round by round %+.1f %% (%+.1f to %+.1f), %+.1f MiB\n", l.String()+":", formatMicroseconds(sorted[len(sorted)/2]),
			more[len(more)/2], more[len(more)/4], more[len(more)*3/4], larger[len(larger)/2])
	}
	return nil
}

// openEventStreams opens streams and, if requested, reads them until stop.
func openEventStreams(url, key string, l eventStreams) (read *int64, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	stop = func() { cancel(); reading.Wait() }
	var mu sync.Mutex
	read = new(int64)
	for range l.count {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return read, stop, err
		}
		req.Header.Set("X-API-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("events: status %s", resp.Status)
		}
		if err != nil {
			stop()
			return read, stop, err
		}
		reading.Go(func() {
			defer resp.Body.Close()
			if !l.read {
				<-ctx.Done()
				return
			}
			got, _ := io.Copy(io.Discard, resp.Body) // until it is cancelled
			mu.Lock()
			defer mu.Unlock()
			*read += got
		})
	}
	return read, stop, nil
}

// callAtSteadyRate makes eventRate calls per second for some time, and returns the CPU time per call.
// Each call starts at a fixed time, so that a late one does not delay the others.
func callAtSteadyRate(s callTarget, duration time.Duration) (time.Duration, error) {
	const clients = 4
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var calling sync.WaitGroup
	calls, failed := make([]int, clients), make([]error, clients)
	used := s.cpuTime()
	for i := range clients {
		calling.Go(func() {
			due := time.Now()
			for end := due.Add(duration); time.Now().Before(end) && failed[i] == nil; calls[i]++ {
				time.Sleep(time.Until(due))
				due = due.Add(clients * time.Second / eventRate)
				failed[i] = callAndCheck(context.Background(), client, s)
			}
		})
	}
	calling.Wait()
	total := 0
	for i := range clients {
		if failed[i] != nil {
			return 0, failed[i]
		}
		total += calls[i]
	}
	if rate := float64(total) / duration.Seconds(); rate < 0.99*eventRate {
		fmt.Printf("  the machine is too busy: %.1f calls a second\n", rate)
	}
	return (s.cpuTime() - used) / time.Duration(total), nil
}

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

// benchEvents measures what streams of events cost: the processor time of MCPProxy
// for a call at a steady rate, with none, one and twenty of them.
func benchEvents(o options, dir, binary string) error {
	upstream, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	own := filepath.Join(dir, "events")
	proxy, subjects, err := proxySubjects(binary, own, "http://"+upstream.addr+"/mcp")
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
	streams := []int{0, 1, 20}
	used := map[int][]time.Duration{}
	for round := range o.rounds {
		for i := range streams {
			n := streams[(i+round)%len(streams)]
			read, stop, err := readEvents("http://"+proxy.addr+"/api/v1/events", strings.TrimSpace(string(key)), n)
			if err != nil {
				return err
			}
			cpu, err := steadily(subjects[0], o.duration)
			stop()
			if err != nil {
				return err
			}
			used[n] = append(used[n], cpu)
			if o.verbose {
				fmt.Printf("  round %d, %2d streams: %s a call, %d bytes read\n", round+1, n, micro(cpu), *read)
			}
		}
	}
	fmt.Printf("%d calls a second through /mcp to a server over HTTP, %d rounds of %s: processor time of MCPProxy for a call\n", eventRate, o.rounds, o.duration)
	for _, n := range streams {
		var more []float64
		for i := range used[n] {
			more = append(more, 100*(float64(used[n][i])/float64(used[0][i])-1))
		}
		sorted := slices.Sorted(slices.Values(used[n]))
		slices.Sort(more)
		fmt.Printf("%2d streams of events: %s; round by round %+.1f %% (%+.1f to %+.1f)\n", n, micro(sorted[len(sorted)/2]),
			more[len(more)/2], more[len(more)/4], more[len(more)*3/4])
	}
	return nil
}

// readEvents opens streams and reads them until stop.
func readEvents(url, key string, n int) (read *int64, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	stop = func() { cancel(); reading.Wait() }
	var mu sync.Mutex
	read = new(int64)
	for range n {
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
			got, _ := io.Copy(io.Discard, resp.Body) // until it is cancelled
			mu.Lock()
			defer mu.Unlock()
			*read += got
		})
	}
	return read, stop, nil
}

// steadily makes calls at the rate for some time, and returns the processor time
// for one.
func steadily(s subject, duration time.Duration) (time.Duration, error) {
	const clients = 4
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var calling sync.WaitGroup
	calls, failed := make([]int, clients), make([]error, clients)
	used := s.cpu()
	for i := range clients {
		calling.Go(func() {
			tick := time.NewTicker(clients * time.Second / eventRate)
			defer tick.Stop()
			for end := time.Now().Add(duration); time.Now().Before(end) && failed[i] == nil; calls[i]++ {
				<-tick.C
				failed[i] = once(context.Background(), client, s)
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
	if rate := float64(total) / duration.Seconds(); rate < 0.9*eventRate {
		fmt.Printf("  the machine is too busy: %.0f calls a second\n", rate)
	}
	return (s.cpu() - used) / time.Duration(total), nil
}

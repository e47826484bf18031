// Command loads runs one fixed amount of work per second (service, burst, http)
// or as fast as it can (batch, etl), so that a prediction made from its gctrace
// under one setting can be checked against a run under another.
//
//	GOGC=100 GODEBUG=gctrace=1 loads -mode service -live 40 -rate 300 -dur 5s -truth truth.json 2>run.log
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

type node struct {
	next *node
	pad  [7]uint64
}

var (
	mode = flag.String("mode", "service", "service: rate-limited; paced: the same on an exact schedule; batch: -total MiB as fast as it goes; "+
		"burst: service with 5x bursts; leak: service that keeps -leak KiB more each second; refill: service that holds its live heap twice for 3 s of every 10; http: a server with a cache, -rate requests/s; "+
		"etl: lines parsed and summed, -total MiB")
	live  = flag.Int("live", 40, "live heap, MiB")
	rate  = flag.Int("rate", 300, "allocation rate, MiB/s (service)")
	total = flag.Int("total", 2000, "MiB to allocate in all (batch)")
	ptr   = flag.Float64("ptr", 0.5, "share of allocations that hold pointers")
	dur   = flag.Duration("dur", 5*time.Second, "how long (service, burst)")
	churn = flag.Float64("replace", 0.02, "share of allocations that replace a live object")
	stks  = flag.Int("goroutines", 10, "idle goroutines with some stack")
	truth = flag.String("truth", "", "write the truth here")
	leak  = flag.Int("leak", 500, "KiB kept for good each second (leak)")
	ball  = flag.Int("ballast", 0, "ballast, MiB")
)

var slots []*node
var blobs [][]byte

func unit(r *rand.Rand) { // allocates 64 KiB
	if r.Float64() < *ptr {
		var head *node
		for i := 0; i < 1024; i++ {
			head = &node{next: head}
			if r.Float64() < *churn {
				slots[r.Intn(len(slots))] = &node{}
			}
		}
		_ = head
	} else {
		for i := 0; i < 64; i++ {
			b := make([]byte, 1024)
			if r.Float64() < *churn {
				blobs[r.Intn(len(blobs))] = b
			}
		}
	}
}

func deep(n int, c chan int) {
	var pad [256]byte
	pad[n&255] = 1
	if n == 0 {
		<-c
		return
	}
	deep(n-1, c)
	_ = pad
}

// serve answers requests from a cache of -live MiB: JSON in, JSON out.
func serve(r *rand.Rand) int64 {
	type item struct {
		ID   int               `json:"id"`
		Name string            `json:"name"`
		Tags map[string]string `json:"tags"`
	}
	cache := make([]*item, *live<<20/1024)
	fill := func(i int) *item {
		return &item{i, strings.Repeat("x", 400), map[string]string{"a": strconv.Itoa(i), "b": "two"}}
	}
	for i := range cache {
		cache[i] = fill(i)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		i, _ := strconv.Atoi(q.URL.Query().Get("id"))
		if r.Float64() < *churn {
			cache[i] = fill(i)
		}
		json.NewEncoder(w).Encode(cache[i])
	})
	var n int64
	for t0 := time.Now(); time.Since(t0) < *dur; {
		tick := time.Now()
		for i := 0; i < *rate/100; i++ {
			q := httptest.NewRequest("GET", "/item?id="+strconv.Itoa(r.Intn(len(cache))), nil)
			handler.ServeHTTP(httptest.NewRecorder(), q)
			n++
		}
		if d := 10*time.Millisecond - time.Since(tick); d > 0 {
			time.Sleep(d)
		}
	}
	runtime.KeepAlive(cache)
	return n
}

// etl parses -total MiB of JSON lines and keeps sums by key, as fast as it can.
func etl(r *rand.Rand) int64 {
	sums := map[string]float64{}
	keys := *live << 20 / 160
	var n, bytes int64
	for bytes < int64(*total)<<20 {
		line := fmt.Sprintf(`{"key":"customer-%d","value":%d,"note":"%s"}`, r.Intn(keys), r.Intn(1000), strings.Repeat("n", 200))
		var row map[string]interface{}
		if json.Unmarshal([]byte(line), &row) == nil {
			sums[row["key"].(string)] += row["value"].(float64)
		}
		bytes += int64(len(line))
		n++
	}
	runtime.KeepAlive(sums)
	return n
}

// refill builds a second copy of the live set, 1/200 of it per call, like a cache that is
// reloaded before the old one is dropped; it returns nil when the copy is complete.
func refill(again []*node, wanted bool) []*node {
	if !wanted {
		return nil
	}
	whole := *live << 20 / 72
	for n := 0; n < whole/200 && len(again) < whole; n++ {
		again = append(again, &node{})
	}
	return again
}

func main() {
	flag.Parse()
	start := time.Now()
	var ballast []byte
	if *ball > 0 {
		ballast = make([]byte, *ball<<20)
	}
	half := *live << 20 / 2
	slots = make([]*node, half/72)
	for i := range slots {
		slots[i] = &node{}
	}
	blobs = make([][]byte, half/1048)
	for i := range blobs {
		blobs[i] = make([]byte, 1024)
	}
	c := make(chan int)
	for i := 0; i < *stks; i++ {
		go deep(20, c)
	}
	var peakRSS uint64
	var stop int32
	done := make(chan bool)
	go func() {
		for atomic.LoadInt32(&stop) == 0 {
			if v := mapped(); v > peakRSS {
				peakRSS = v
			}
			time.Sleep(pollEvery)
		}
		close(done)
	}()
	work := time.Now()
	var units int64
	var lat []float64
	r := rand.New(rand.NewSource(1))
	switch *mode {
	case "http":
		units = serve(r)
	case "etl":
		units = etl(r)
	case "batch":
		for n := 0; n < *total*16; n++ {
			unit(r)
			units++
		}
	default:
		var again []*node
		var kept [][]byte
		ticks := 0
		for t0 := time.Now(); time.Since(t0) < *dur; {
			tick := time.Now()
			if *mode == "refill" {
				again = refill(again, int(time.Since(t0)/time.Second)%10 >= 6 && int(time.Since(t0)/time.Second)%10 < 9)
			}
			if *mode == "leak" {
				kept = append(kept, make([]byte, *leak<<10/200))
			}
			n := *rate * 16 / 200
			if *mode == "burst" && int(time.Since(t0)/(500*time.Millisecond))%4 == 3 {
				n *= 5
			}
			for i := 0; i < n; i++ {
				unit(r)
				units++
			}
			lat = append(lat, time.Since(tick).Seconds()*1e3)
			if *mode == "paced" {
				// What was missed is made up for, so that every run allocates the same.
				ticks++
				time.Sleep(time.Duration(ticks)*5*time.Millisecond - time.Since(t0))
			} else if d := 5*time.Millisecond - time.Since(tick); d > 0 {
				time.Sleep(d)
			}
		}
		runtime.KeepAlive(kept)
	}
	workS := time.Since(work).Seconds()
	atomic.StoreInt32(&stop, 1)
	<-done
	if *truth != "" {
		m := runtimeMetrics()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		m["NumGC"], m["GCCPUFraction"], m["PauseTotalNs"] = ms.NumGC, ms.GCCPUFraction, ms.PauseTotalNs
		m["wall_s"], m["work_s"], m["units_64KiB"], m["peak_total_minus_released_bytes"] = time.Since(start).Seconds(), workS, units, peakRSS
		m["gomaxprocs"], m["go_version"], m["GOGC"], m["GOMEMLIMIT"] = runtime.GOMAXPROCS(0), runtime.Version(), os.Getenv("GOGC"), os.Getenv("GOMEMLIMIT")
		m["args"] = os.Args[1:]
		f, err := os.Create(*truth)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		e := json.NewEncoder(f)
		e.SetIndent("", " ")
		e.Encode(m)
		f.Close()
	}
	runtime.KeepAlive(ballast)
	_ = lat
}

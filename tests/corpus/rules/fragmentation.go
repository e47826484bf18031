// A cache of small records that loses most of them at random: their spans stay in use.
package main

import (
	"encoding/csv"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"time"
)

var sink []byte

func main() {
	w := csv.NewWriter(os.Stdout)
	w.Write([]string{"elapsed_s", "HeapAlloc", "HeapSys", "HeapIdle", "HeapInuse", "HeapReleased", "HeapObjects", "Sys", "NextGC", "NumGC", "TotalAlloc", "Mallocs", "Frees"})
	r := rand.New(rand.NewSource(1))
	cache := map[int][]byte{}
	next := 0
	begin := time.Now()
	u := func(v uint64) string { return strconv.FormatUint(v, 10) }
	for s := 0; s < 60; s++ {
		until := time.Now().Add(time.Second)
		switch {
		case s < 20: // the cache fills
			for i := 0; i < 60000; i++ {
				cache[next] = make([]byte, 96+r.Intn(160))
				next++
			}
		case s < 30: // most entries expire
			for i := 0; i < 200000; i++ {
				delete(cache, r.Intn(next))
			}
		default: // requests
			for i := 0; i < 2000; i++ {
				sink = append(make([]byte, 0, 4096), cache[r.Intn(next)]...)
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.Write([]string{strconv.FormatFloat(time.Since(begin).Seconds(), 'f', 3, 64), u(m.HeapAlloc), u(m.HeapSys), u(m.HeapIdle), u(m.HeapInuse), u(m.HeapReleased), u(m.HeapObjects), u(m.Sys), u(m.NextGC), u(uint64(m.NumGC)), u(m.TotalAlloc), u(m.Mallocs), u(m.Frees)})
		w.Flush()
		time.Sleep(time.Until(until))
	}
}

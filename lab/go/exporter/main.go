// Serves the Go metrics of this program as client_golang does: at /metrics with the default
// collector, at /all with all of runtime/metrics. It allocates all the time, so that the garbage
// collector has work to do; it can also leak, and compute on more goroutines than there are CPUs.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	sink []byte
	spun atomic.Uint64
)

func handler(collector prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collector,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on")
	live := flag.Int("live", 20, "live heap in MiB")
	rate := flag.Int("rate", 50, "allocation rate in MiB/s")
	grow := flag.Float64("grow", 0, "growth of the live heap in MiB per minute")
	spin := flag.Int("spin", 0, "goroutines that only compute")
	flag.Parse()

	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())

	// Small objects with pointers, so that marking them is work.
	type node struct {
		next *node
		data [112]byte
	}
	var head *node
	add := func(mib float64) {
		for range int(mib * (1 << 20) / 128) {
			head = &node{next: head}
		}
	}
	add(float64(*live))
	if *grow > 0 {
		go func() {
			for range time.Tick(time.Second) {
				add(*grow / 60)
			}
		}()
	}
	for range *spin {
		go func() {
			for n := uint64(0); ; n++ {
				spun.Store(n)
			}
		}()
	}
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			for range *rate << 20 / 100 / 4096 {
				sink = make([]byte, 4096)
			}
		}
	}()

	everything := collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)
	http.Handle("/metrics", handler(collectors.NewGoCollector()))
	http.Handle("/all", handler(collectors.NewGoCollector(everything)))
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
	fmt.Fprintln(os.Stderr, head != nil)
}

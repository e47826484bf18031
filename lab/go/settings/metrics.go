//go:build metrics
// +build metrics

package main

import (
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func init() {
	serve := func(path string, collector prometheus.Collector) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector)
		http.Handle(path, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	}
	serve("/metrics", collectors.NewGoCollector())
	all := collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)
	serve("/all", collectors.NewGoCollector(all))
	go http.ListenAndServe(os.Getenv("METRICS"), nil)
}

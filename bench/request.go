package main

import (
	"context"
	"errors"
	"strings"
	"time"
)

// request compares a small call with a raw echo of as many bytes, block by block
// in turns, with nothing else going on.
func (b *bench) request(ctx context.Context) (err error) {
	e, err := b.echo()
	if err != nil {
		return err
	}
	d, place, err := b.scripted("request")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	w, err := dial(ctx, place)
	if err != nil {
		return err
	}
	defer w.close()
	const blocks = 20
	n := b.count(10_000) / blocks
	params := statusParams()
	var echoes, calls []time.Duration
	var answer int
	for range blocks {
		if echoes, err = e.times(echoes, n); err != nil {
			return err
		}
		for range n {
			begin := time.Now()
			raw, err := w.call("status", params)
			if err != nil {
				return err
			}
			calls = append(calls, time.Since(begin))
			answer = len(raw) + len(`{"jsonrpc":"2.0","id":10000,"result":}`)
		}
	}
	call, floor := median(calls), median(echoes)
	b.report(lineRequest, float64(call)/float64(floor), "status p50 %.1f µs (answer %d bytes), raw echo %.1f µs", micros(call), answer, micros(floor))
	return nil
}

// statusParams makes a status request as long as a frame of ours.
func statusParams() string {
	const around = len(`{"jsonrpc":"2.0","id":10000,"method":"status","params":{"_meta":{"pad":""}}}` + "\n")
	return `{"_meta":{"pad":"` + strings.Repeat("x", frameSize-around) + `"}}`
}

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// commits tells those who wait for a transaction that a block holds it.
type commits struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by the transaction in base64, as blocks show it
}

func (c *commits) wait(tx string) <-chan struct{} {
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[tx] = done
	return done
}

func (c *commits) forget(tx string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, tx)
}

func (c *commits) block(txs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, tx := range txs {
		if done := c.waiting[tx]; done != nil {
			close(done)
			delete(c.waiting, tx)
		}
	}
}

// cometMessage is an answer or an event, as far as it matters here.
type cometMessage struct {
	ID    int64 `json:"id"`
	Error *struct {
		Message string `json:"message"`
		Data    string `json:"data"`
	} `json:"error"`
	Result struct {
		Code uint32          `json:"code"`
		Log  string          `json:"log"`
		Data json.RawMessage `json:"data"`
	} `json:"result"`
}

// err is what the server refused, if it did.
func (m *cometMessage) err() error {
	switch {
	case m.Error != nil:
		return fmt.Errorf("compare: refused: %s %s", m.Error.Message, m.Error.Data)
	case m.Result.Code != 0:
		return fmt.Errorf("compare: refused with code %d: %s", m.Result.Code, m.Result.Log)
	}
	return nil
}

// transactions are those of a message about a new block.
func (m *cometMessage) transactions() []string {
	var data struct {
		Value struct {
			Block struct {
				Data struct {
					Txs []string `json:"txs"`
				} `json:"data"`
			} `json:"block"`
		} `json:"value"`
	}
	if json.Unmarshal(m.Result.Data, &data) != nil {
		return nil // an answer, whose data is a text
	}
	return data.Value.Block.Data.Txs
}

// cometLoad puts keys until the duration of w is over, or total of them if that
// is not 0. A put is done when a block with it is committed on the validator
// that took it, which one connection more tells.
func cometLoad(ctx context.Context, address string, w work, total uint64) (loaded, error) {
	ctx, cancel := context.WithCancel(ctx)
	waiting := &commits{waiting: make(map[string]chan struct{})}
	var readers sync.WaitGroup
	var sockets []*socket
	defer func() {
		cancel()
		for _, s := range sockets {
			_ = s.close()
		}
		readers.Wait()
	}()
	var failed atomic.Pointer[error] // of a connection
	for i := range w.connections + 1 {
		s, err := dialSocket(ctx, address, "/websocket")
		if err != nil {
			return loaded{}, err
		}
		sockets = append(sockets, s)
		if i == w.connections { // committed blocks are told on the last one
			if err := subscribe(s); err != nil {
				return loaded{}, err
			}
		}
		readers.Go(func() {
			if err := follow(s, waiting); ctx.Err() == nil {
				failed.CompareAndSwap(nil, &err)
				cancel()
			}
		})
	}
	var begun atomic.Uint64
	latencies := make([][]time.Duration, w.clients)
	var clients sync.WaitGroup
	start := time.Now()
	for i := range w.clients {
		clients.Go(func() {
			for ctx.Err() == nil && (total == 0 && time.Since(start) < w.duration || begun.Add(1) <= total) {
				began := time.Now()
				if err := cometPut(ctx, sockets[i%w.connections], waiting); err != nil {
					if ctx.Err() == nil {
						failed.CompareAndSwap(nil, &err)
						cancel()
					}
					return
				}
				latencies[i] = append(latencies[i], time.Since(began))
			}
		})
	}
	clients.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return loaded{}, *err
	}
	if err := ctx.Err(); err != nil {
		return loaded{}, err
	}
	return summarize(slices.Concat(latencies...), took)
}

// subscribe asks for new blocks, and waits until that is granted: none may be missed.
func subscribe(s *socket) error {
	err := s.send([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"query":"tm.event='NewBlock'"}}`))
	if err != nil {
		return err
	}
	text, err := s.receive()
	if err != nil {
		return err
	}
	var m cometMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: CometBFT: %w", errOutput, err)
	}
	return m.err()
}

// follow reads a connection to its end.
func follow(s *socket, waiting *commits) error {
	for {
		text, err := s.receive()
		if err != nil {
			return err
		}
		var m cometMessage
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%w: CometBFT: %w", errOutput, err)
		}
		if err := m.err(); err != nil {
			return err
		}
		waiting.block(m.transactions())
	}
}

// cometPut sets a random key and waits until a block has it.
func cometPut(ctx context.Context, s *socket, waiting *commits) error {
	tx := base64.StdEncoding.EncodeToString(cometTransaction(rand.Uint64()))
	done := waiting.wait(tx)
	defer waiting.forget(tx)
	err := s.send([]byte(`{"jsonrpc":"2.0","id":2,"method":"broadcast_tx_sync","params":{"tx":"` + tx + `"}}`))
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cometTransaction is key=value. The value starts with n, because no
// transaction is taken twice.
func cometTransaction(n uint64) []byte {
	tx := fmt.Appendf(nil, "%0*d=", keySize, n%keySpace)
	tx = append(strconv.AppendUint(tx, n, 36), '.')
	for len(tx) < keySize+1+valueSize {
		tx = append(tx, 'x')
	}
	return tx
}

// summarize is the rate and the latencies of all that was done.
func summarize(latencies []time.Duration, took time.Duration) (loaded, error) {
	if len(latencies) == 0 {
		return loaded{}, errors.New("compare: nothing was done")
	}
	slices.Sort(latencies)
	at := func(percent int) float64 {
		return milliseconds(latencies[(len(latencies)*percent+99)/100-1])
	}
	return loaded{
		done: uint64(len(latencies)), perSecond: float64(len(latencies)) / took.Seconds(), p50: at(50), p99: at(99),
	}, nil
}

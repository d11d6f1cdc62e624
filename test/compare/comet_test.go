package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// blockServer answers as a validator does that makes a block of every two
// transactions; events come in two frames with a ping between.
type blockServer struct {
	mu       sync.Mutex
	pending  []string
	listener func(txs []string) error
	refuse   bool
}

func (b *blockServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if _, err := http.ReadRequest(in); err != nil {
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	for {
		text, err := readMasked(in)
		if err != nil {
			return
		}
		var m struct {
			Method string
			Params struct{ Tx string }
		}
		if len(text) == 0 || json.Unmarshal(text, &m) != nil {
			continue // a pong
		}
		b.mu.Lock()
		switch {
		case m.Method == "subscribe":
			b.listener = func(txs []string) error {
				list, _ := json.Marshal(txs)
				text := `{"id":1,"result":{"query":"q","data":{"type":"tendermint/event/NewBlock","value":{"block":{"data":{"txs":` + string(list) + `}}}}}}`
				half := len(text) / 2
				frames := plainFrame(0x01, text[:half]) + plainFrame(0x89, "?") + plainFrame(0x80, text[half:])
				_, err := io.WriteString(conn, frames)
				return err
			}
			_, _ = io.WriteString(conn, plainFrame(0x81, `{"id":1,"result":{}}`))
		case b.refuse:
			_, _ = io.WriteString(conn, plainFrame(0x81, `{"id":2,"result":{"code":7,"log":"full","data":""}}`))
		default:
			_, _ = io.WriteString(conn, plainFrame(0x81, `{"id":2,"result":{"code":0,"data":"","hash":"00"}}`))
			if b.pending = append(b.pending, m.Params.Tx); len(b.pending) == 2 && b.listener != nil {
				_ = b.listener(b.pending)
				b.pending = nil
			}
		}
		b.mu.Unlock()
	}
}

// plainFrame is a frame as servers send it, its head given.
func plainFrame(head byte, text string) string {
	frame := []byte{head, byte(len(text))}
	if len(text) > 125 {
		frame = binary.BigEndian.AppendUint16([]byte{head, 126}, uint16(len(text)))
	}
	return string(frame) + text
}

// readMasked reads a frame of a client, and unmasks it; that of a control frame is empty.
func readMasked(in io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	if head[1]&0x80 == 0 {
		return nil, errors.New("a client must mask")
	}
	size := uint64(head[1] & 0x7f)
	if size == 126 {
		var long [2]byte
		if _, err := io.ReadFull(in, long[:]); err != nil {
			return nil, err
		}
		size = uint64(binary.BigEndian.Uint16(long[:]))
	}
	frame := make([]byte, 4+size)
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, err
	}
	for i := range size {
		frame[4+i] ^= frame[i%4]
	}
	if head[0]&0x08 != 0 {
		return nil, nil
	}
	return frame[4:], nil
}

// listen serves until the test ends.
func (b *blockServer) listen(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return l.Addr().String()
}

func TestAPutIsDoneWhenItsBlockIs(t *testing.T) {
	b := new(blockServer)
	l, err := cometLoad(t.Context(), b.listen(t), work{clients: 4, connections: 2, duration: time.Hour}, 100)
	if err != nil || l.done != 100 || l.p50 <= 0 || l.p99 < l.p50 {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestARefusedPutFailsTheLoad(t *testing.T) {
	b := &blockServer{refuse: true}
	_, err := cometLoad(t.Context(), b.listen(t), work{clients: 4, connections: 2, duration: time.Hour}, 100)
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("got %v", err)
	}
}

func TestTransactionsAreKeysAndValuesOfTheirSizes(t *testing.T) {
	seen := make(map[string]bool)
	for n := range uint64(3) {
		tx := string(cometTransaction(1<<63 + n*keySpace))
		key, value, ok := strings.Cut(tx, "=")
		if !ok || len(key) != keySize || len(value) != valueSize || strings.ContainsAny(value, "=:") || strings.Contains(key, ":") {
			t.Errorf("%q", tx)
		}
		seen[base64.StdEncoding.EncodeToString([]byte(tx))] = true
	}
	if len(seen) != 3 {
		t.Error("two are the same")
	}
}

func TestQuantilesOfLatencies(t *testing.T) {
	var latencies []time.Duration
	for i := range 200 {
		latencies = append(latencies, time.Duration(200-i)*time.Millisecond)
	}
	l, err := summarize(latencies, 2*time.Second)
	if err != nil || l != (loaded{done: 200, perSecond: 100, p50: 100, p99: 198}) {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := summarize(nil, time.Second); err == nil {
		t.Error("nothing was done, and that is fine")
	}
}

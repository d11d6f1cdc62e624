package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// socket is the client's end of a WebSocket (RFC 6455), as far as messages of
// text to and from a trusted server on this machine need it. One goroutine may
// read, any may write.
type socket struct {
	conn    net.Conn
	in      *bufio.Reader
	writing sync.Mutex
}

// The opcodes of frames.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// largestMessage bounds what is read, in bytes.
const largestMessage = 64 << 20

var errSocket = errors.New("compare: websocket")

// dialSocket opens a WebSocket at a path of a server, host:port.
func dialSocket(ctx context.Context, address, path string) (*socket, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSocket, err)
	}
	s := &socket{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	// The key keeps caches from answering; there are none here, so any will do.
	const request = "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	if _, err := fmt.Fprintf(conn, request, path, address); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errSocket, err), conn.Close())
	}
	resp, err := http.ReadResponse(s.in, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", errSocket, address, err), conn.Close())
	}
	return s, nil
}

func (s *socket) close() error { return s.conn.Close() }

// send sends one message of text.
func (s *socket) send(text []byte) error { return s.frame(opText, text) }

// frame writes a whole frame. Clients must mask what they send, against proxies
// that misread it; a mask of zeros changes nothing.
func (s *socket) frame(op byte, payload []byte) error {
	const final, masked = 0x80, 0x80
	frame := []byte{final | op}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, masked|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, masked|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, masked|127), uint64(n))
	}
	frame = append(append(frame, 0, 0, 0, 0), payload...)
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.conn.Write(frame); err != nil {
		return fmt.Errorf("%w: %w", errSocket, err)
	}
	return nil
}

// receive waits for a message, and answers pings meanwhile.
func (s *socket) receive() ([]byte, error) {
	var message []byte
	for {
		final, op, payload, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSocket, err)
		}
		switch op {
		case opPing:
			if err := s.frame(opPong, payload); err != nil {
				return nil, err
			}
			continue
		case opPong:
			continue
		case opClose:
			return nil, fmt.Errorf("%w: %w", errSocket, io.EOF)
		}
		if len(message)+len(payload) > largestMessage {
			return nil, fmt.Errorf("%w: a message of more than %d bytes", errSocket, largestMessage)
		}
		message = append(message, payload...)
		if final {
			return message, nil
		}
	}
}

// next reads a frame. Servers do not mask theirs.
func (s *socket) next() (final bool, op byte, payload []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(s.in, head[:2]); err != nil {
		return false, 0, nil, err
	}
	final, op = head[0]&0x80 != 0, head[0]&0x0f
	size := uint64(head[1])
	switch size {
	case 126:
		_, err = io.ReadFull(s.in, head[:2])
		size = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(s.in, head[:8])
		size = binary.BigEndian.Uint64(head[:8])
	}
	if err != nil {
		return false, 0, nil, err
	}
	if size > largestMessage {
		return false, 0, nil, fmt.Errorf("a frame of %d bytes, or a masked one", size)
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(s.in, payload)
	return final, op, payload, err
}

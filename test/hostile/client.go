package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Client speaks bytes to the API of a node.
type Client struct{ Address string }

// Raw sends bytes over a connection of their own, and reads the answer's status;
// 0 says that the server hung up without one.
func (c Client) Raw(request []byte, within time.Duration) (status int, err error) {
	conn, err := net.Dial("tcp", c.Address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	go conn.Write(request) // an answer may come before all of it is taken
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if t, ok := err.(net.Error); ok && t.Timeout() {
			return 0, fmt.Errorf("hostile: no answer within %v", within)
		}
		return 0, nil
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

// Call posts a body to a method of the API, and returns the status and the answer.
func (c Client) Call(method, contentType string, body []byte, header ...string) (status int, answer []byte, err error) {
	req, err := http.NewRequest("POST", "http://"+c.Address+"/aweigh.v1.Node/"+method, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer, err
}

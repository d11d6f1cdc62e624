package coredns

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/core/dnsserver" // the server type "dns"
	_ "github.com/coredns/coredns/plugin/bind"    // the address
	_ "github.com/coredns/coredns/plugin/etcd"    // the plugin under test
	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// startNode starts a devnet of one node, and gives the address of its port of etcd's API.
func startNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "aweigh")
	if out, err := exec.Command("go", "build", "-C", "../../..", "-o", program, "./cmd/aweigh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, "devnet", "--processes", "--nodes", "1", "--data-dir", filepath.Join(dir, "net"), "--etcd-listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	address := ""
	for in := bufio.NewScanner(out); in.Scan(); {
		if f := strings.Fields(in.Text()); len(f) > 3 && strings.HasPrefix(f[0], "node") {
			address = f[2]
		}
		if strings.HasPrefix(in.Text(), "ready") {
			return address
		}
	}
	t.Fatal("the devnet ends")
	return ""
}

// TestEveryTypeOfRecord: CoreDNS answers from what is put below /skydns/, and from what is changed there at once.
func TestEveryTypeOfRecord(t *testing.T) {
	etcd := startNode(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	put := func(key, value string) {
		t.Helper()
		if _, err := c.Put(ctx, "/skydns/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("org/example/a", `{"host":"10.0.0.1","ttl":60}`)
	put("org/example/aaaa", `{"host":"2001:db8::1","ttl":60}`)
	put("org/example/alias", `{"host":"a.example.org","ttl":60}`)
	put("org/example/_tcp/_http/x1", `{"host":"a.example.org","port":8080,"priority":5,"weight":10,"ttl":60}`)
	put("org/example/text", `{"text":"anchors aweigh","ttl":60}`)
	put("org/example/mail/x1", `{"host":"a.example.org","mail":true,"priority":10,"ttl":60}`)
	put("org/example/dns/ns/x1", `{"host":"10.0.0.53","ttl":60}`)
	put("arpa/in-addr/10/0/0/1", `{"host":"a.example.org","ttl":60}`)

	server, err := caddy.Start(caddy.CaddyfileInput{ServerTypeName: "dns", Contents: fmt.Appendf(nil,
		"example.org:0 0.0.10.in-addr.arpa:0 {\n\tbind 127.0.0.1\n\tetcd {\n\t\tpath /skydns\n\t\tendpoint http://%s\n\t}\n}\n", etcd)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	address := server.Servers()[0].LocalAddr().String()
	ask := func(name string, typ uint16) *dns.Msg {
		t.Helper()
		r, err := dns.Exchange(new(dns.Msg).SetQuestion(name, typ), address)
		if err != nil {
			t.Fatalf("%s %s: %v", name, dns.TypeToString[typ], err)
		}
		return r
	}
	for _, q := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"a.example.org.", dns.TypeA, "A\t10.0.0.1"},
		{"aaaa.example.org.", dns.TypeAAAA, "AAAA\t2001:db8::1"},
		{"alias.example.org.", dns.TypeCNAME, "CNAME\ta.example.org."},
		{"alias.example.org.", dns.TypeA, "A\t10.0.0.1"},
		{"_http._tcp.example.org.", dns.TypeSRV, "SRV\t5 100 8080 a.example.org."}, // CoreDNS gives weights as a share of 100
		{"text.example.org.", dns.TypeTXT, "TXT\t\"anchors aweigh\""},
		{"mail.example.org.", dns.TypeMX, "MX\t10 a.example.org."},
		{"example.org.", dns.TypeNS, "NS\tx1.ns.dns.example.org."},
		{"1.0.0.10.in-addr.arpa.", dns.TypePTR, "PTR\ta.example.org."},
	} {
		r := ask(q.name, q.typ)
		found := false
		for _, rr := range r.Answer {
			found = found || strings.Contains(rr.String(), q.want)
		}
		if !found || r.Rcode != dns.RcodeSuccess {
			t.Errorf("%s %s: %v", q.name, dns.TypeToString[q.typ], r)
		}
	}
	put("org/example/a", `{"host":"10.0.0.2","ttl":60}`)
	if r := ask("a.example.org.", dns.TypeA); len(r.Answer) != 1 || !strings.Contains(r.Answer[0].String(), "10.0.0.2") {
		t.Errorf("after a change: %v", r)
	}
	if _, err := c.Delete(ctx, "/skydns/org/example/a"); err != nil {
		t.Fatal(err)
	}
	if r := ask("a.example.org.", dns.TypeA); r.Rcode != dns.RcodeNameError {
		t.Errorf("after a deletion: %v", r)
	}
}

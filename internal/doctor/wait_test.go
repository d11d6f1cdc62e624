package doctor

import (
	"net"
	"reflect"
	"sync"
	"testing"
	"time"
)

// TestAddressesAreAskedAtOnce holds that nodes which take connections and do not answer are waited for together. Each
// address here closes its connections only once all were asked.
func TestAddressesAreAskedAtOnce(t *testing.T) {
	var all sync.WaitGroup
	addresses := make([]string, 4)
	for i := range addresses {
		all.Add(1)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
		go func() {
			asked := sync.OnceFunc(all.Done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					asked()
					all.Wait()
					_ = c.Close()
				}()
			}
		}()
	}
	e := &exam{ctx: t.Context()}
	began := time.Now()
	if other := e.find(addresses[:2], addresses[2:]); other != "" || e.runs() {
		t.Errorf("%q answered", other)
	}
	if took := time.Since(began); took >= answerTime {
		t.Errorf("it took %v", took)
	}
}

// TestFindingsComeAsTheyAreMade holds that none waits for the end of the examination.
func TestFindingsComeAsTheyAreMade(t *testing.T) {
	s := founded(t, time.Now())
	var came []Finding
	parts, between := 0, 0
	s.Found = func(f Finding) { came = append(came, f) }
	s.Begun = func(string) {
		if parts++; len(came) > between {
			between = len(came)
		}
	}
	if all := Examine(t.Context(), s); !reflect.DeepEqual(came, all) {
		t.Errorf("came %v, of %v", came, all)
	}
	if parts == 0 || between == 0 || between == len(came) {
		t.Errorf("of %d findings, %d came before the last of %d parts", len(came), between, parts)
	}
}

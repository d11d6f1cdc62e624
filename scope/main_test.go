package scope

import (
	"testing"

	"github.com/aweigh/aweigh/internal/testheap"
	"github.com/aweigh/aweigh/internal/testshort"
)

func TestMain(m *testing.M) {
	testheap.Roomy()
	testshort.FewerDraws()
	m.Run()
}

package client

import (
	"context"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Forecast tells what would become of a change, and what it would change. It changes nothing.
func (c *Client) Forecast(ctx context.Context, req *aweighv1.ForecastRequest) (*aweighv1.ForecastResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Forecast, req)
}

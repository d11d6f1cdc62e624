package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
)

func (a *app) usersCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "users", Short: "Show the users of the port of etcd's API, with their permissions", Args: cobra.NoArgs,
		Long: "Users and roles are etcd's, and are made with etcd's clients: \"etcdctl user\", \"role\" and\n" +
			"\"auth\". They bind the clients of that port, at all nodes of the network.",
		Example: "  aweigh users show\n  aweigh users disable --yes -m \"root's password is lost\"",
	}
	return a.under(c, a.usersShow(), a.usersDisable())
}

func (a *app) usersShow() *cobra.Command {
	c := &cobra.Command{Use: "show", Short: "Show users, roles and what they permit", Args: cobra.NoArgs}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Users(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Users(r)
	})
}

func (a *app) usersDisable() *cobra.Command {
	c := &cobra.Command{
		Use: "disable", Short: "Admit all clients again", Args: cobra.NoArgs,
		Long: "Clients of etcd's port need not identify themselves any more, at all nodes. Users and roles\n" +
			"stay: this is for when the password of root is lost. Set another one with\n" +
			"\"etcdctl user passwd root\", and \"etcdctl auth enable\". The node must be on this machine.",
	}
	once := onceFlags(c)
	yes := c.Flags().Bool("yes", false, "do it; without --yes, only print what would follow")
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		o, err := once()
		if err != nil {
			return err
		}
		if !*yes {
			return fmt.Errorf("%w: every client that reaches etcd's port of any node could then read and write all keys; to do it, add --yes", errUnconfirmed)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		if r, err := s.Client.Users(ctx); err == nil && !r.Enabled && !c.Flags().Changed("nonce") {
			return fmt.Errorf("%w: users are disabled already", errState)
		}
		if _, err := s.Client.DisableUsers(ctx, o); err != nil {
			return err
		}
		if s.Printer.Format == show.JSON {
			r, err := s.Client.Users(ctx)
			if err != nil {
				return err
			}
			return s.Printer.Users(r)
		}
		fmt.Fprintln(a.out, "users are disabled: every client that reaches etcd's port has all rights; to enable them again: etcdctl auth enable")
		return nil
	})
}

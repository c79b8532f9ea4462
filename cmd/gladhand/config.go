package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
	"gladhand/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Read and change the settings",
		Example: "  gladhand config list\n  gladhand config set mode edits\n  gladhand config path",
	}
	cmd.Args = args(1, -1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return usage(fmt.Errorf("there is no `config %s`; there are get, set, list, path and validate", args[0]))
	}
	cmd.AddCommand(a.configGet(), a.configSet(), a.configList(), a.configPath(), a.configValidate())
	return cmd
}

func (a *app) configGet() *cobra.Command {
	return &cobra.Command{
		Use: "get PROP", Short: "Print one setting", Example: "  gladhand config get queue.max", Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error {
				v, err := c.ConfigGet(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(gladhand.ConfigProp{Prop: args[0], Value: v})
				}
				a.print("%s", plain(v))
				return nil
			})
		},
	}
}

// plain is a setting's value for people: a text without its quotes.
func plain(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return oneLine(text)
	}
	return oneLine(string(v))
}

func (a *app) configSet() *cobra.Command {
	return &cobra.Command{
		Use: "set PROP VALUE", Short: "Change one setting; comments in the file stay", Args: args(2, 2),
		Example: "  gladhand config set queue.max 32\n  gladhand config set mode edits",
		RunE: func(cmd *cobra.Command, args []string) error {
			value := json.RawMessage(args[1])
			if !json.Valid(value) {
				value, _ = json.Marshal(args[1]) // a text always marshals
			}
			var name string
			if args[0] == "model" && json.Unmarshal(value, &name) == nil {
				if err := a.checkModel(cmd.Context(), name); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), func(c *client.Client) error {
				if err := c.ConfigSet(cmd.Context(), args[0], value); err != nil {
					return err
				}
				value, err := c.ConfigGet(cmd.Context(), args[0]) // a key is masked in it
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(gladhand.ConfigProp{Prop: args[0], Value: value})
				}
				a.print("%s = %s", oneLine(args[0]), plain(value))
				return nil
			})
		},
	}
}

func (a *app) configList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Print all settings", Example: "  gladhand config list", Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error {
				raw, err := c.ConfigList(cmd.Context())
				if err != nil {
					return err
				}
				var r struct {
					Settings []config.Item `json:"settings"`
				}
				if err := json.Unmarshal(raw, &r); err != nil {
					return fmt.Errorf("the daemon's list cannot be read: %w", err)
				}
				for _, it := range r.Settings {
					if err := a.printSetting(it); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (a *app) printSetting(it config.Item) error {
	if a.json {
		return a.emit(it)
	}
	note := ""
	if it.Set {
		note = ", set in the file"
	}
	a.print("%s = %s", oneLine(it.Prop), plain(it.Value))
	a.print("    %s (default %s%s)", oneLine(it.Doc), plain(it.Default), note)
	return nil
}

func (a *app) configPath() *cobra.Command {
	return &cobra.Command{
		Use: "path", Short: "Print where the settings file is", Example: "  $EDITOR \"$(gladhand config path)\"", Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			path, _ := a.settingsPath()
			if a.json {
				return a.emit(map[string]string{"path": path})
			}
			a.print("%s", path)
			return nil
		},
	}
}

// configValidate works on the file itself: a daemon does not start with a bad one.
func (a *app) configValidate() *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE]", Short: "Check a settings file", Example: "  gladhand config validate", Args: args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, _ := a.settingsPath()
			if len(args) > 0 {
				path = args[0]
				if _, err := os.Stat(path); err != nil {
					return err
				}
			}
			if _, err := config.Open(path); err != nil {
				return &exitError{exitFailed, err}
			}
			if a.json {
				return a.emit(map[string]any{"path": path, "valid": true})
			}
			a.print("%s is fine", oneLine(strings.TrimSpace(path)))
			return nil
		},
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/config"
	"gladhand/model"
)

func (a *app) models() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "models [TEXT]", Short: "Models that can be used, and why others cannot",
		Example: "  gladhand models\n  gladhand models opus\n  gladhand models key anthropic",
		Long: "Lists providers and their models: those that are configured, have a key, or are usual;\n" +
			"with TEXT only models whose id has it. Servers on this machine are asked. It looks at\n" +
			"the settings and the environment of this shell; a daemon that runs already keeps the\n" +
			"environment it was started in until `gladhand daemon restart`.",
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := ""
			if len(args) > 0 {
				text = args[0]
			}
			return a.listModels(cmd.Context(), text, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also providers without a key, and every model")
	cmd.AddCommand(a.modelsKey())
	return cmd
}

// registry is the models of the settings and of this environment.
func (a *app) registry() (*model.Registry, config.Settings, error) {
	path, _ := a.settingsPath()
	f, err := config.Open(path)
	if err != nil {
		return nil, config.Settings{}, err
	}
	s := f.Settings()
	return model.NewRegistry(registryOptions(s)), s, nil
}

// registryOptions are what the settings say of models.
func registryOptions(s config.Settings) model.RegistryOptions {
	o := model.RegistryOptions{
		Model: s.Model, Env: os.Getenv, Offline: model.Offline{Pace: streamPace}, Network: networkOf(s),
		Providers: map[string]model.ProviderOptions{},
	}
	for name, p := range s.Providers {
		po := model.ProviderOptions{Kind: p.Kind, URL: p.URL.Reveal(), Key: p.Key, Headers: p.Headers, Disabled: p.Disabled}
		for _, m := range p.Models {
			po.Models = append(po.Models, model.ModelOptions{ID: m.ID, Name: m.Name, Limits: model.Limits{
				Window: m.Window, Output: m.Output, Images: m.Images, Efforts: m.Efforts, Price: model.Price(m.Price),
			}})
		}
		o.Providers[name] = po
	}
	return o
}

// networkOf is how providers are reached.
func networkOf(s config.Settings) model.Network {
	n := model.Network{Proxy: s.Network.Proxy.Reveal(), CA: s.Network.CA}
	for host := range strings.SplitSeq(s.Network.NoProxy, ",") {
		if host = strings.TrimSpace(host); host != "" {
			n.NoProxy = append(n.NoProxy, host)
		}
	}
	return n
}

// modelLine is a model, or a provider that is not ready, as --json has it.
type modelLine struct {
	Provider string       `json:"provider"`
	ID       string       `json:"id,omitempty"`
	Name     string       `json:"name"`
	Ready    bool         `json:"ready"`
	Default  bool         `json:"default,omitempty"`
	Why      string       `json:"why,omitempty"`
	Mend     string       `json:"mend,omitempty"`
	Key      string       `json:"key,omitempty"` // where it is from
	Window   int          `json:"window,omitempty"`
	Output   int          `json:"output,omitempty"`
	Images   bool         `json:"images,omitempty"`
	NoTools  bool         `json:"no_tools,omitempty"`
	Efforts  []string     `json:"efforts,omitempty"`
	Price    *model.Price `json:"price,omitempty"` // US dollars for a million tokens
}

// fewModels is how many models of a provider are shown unasked.
const fewModels = 12

func (a *app) listModels(ctx context.Context, text string, all bool) error {
	reg, _, err := a.registry()
	if err != nil {
		return err
	}
	reg.Refresh(ctx)
	start, shown := reg.Default(), 0
	for _, p := range reg.Providers(all) {
		list := matching(p.Models, text)
		if text != "" && len(list) == 0 && !strings.Contains(p.ID, text) {
			continue
		}
		shown++
		if a.json {
			err = a.emitModels(p, list, start, all || text != "")
		} else {
			err = a.printModels(p, list, start, all || text != "")
		}
		if err != nil {
			return err
		}
	}
	if shown == 0 {
		return &exitError{exitFailed, fmt.Errorf("no model has %q in its id; `gladhand models --all` lists every one", text)}
	}
	if a.json {
		return nil
	}
	a.print("\nNew sessions use %s: %s.", oneLine(start), reg.Why())
	return nil
}

// matching are the models whose id has a text.
func matching(list []model.Info, text string) []model.Info {
	var found []model.Info
	for _, m := range list {
		if strings.Contains(strings.ToLower(m.ID), strings.ToLower(text)) {
			found = append(found, m)
		}
	}
	return found
}

func (a *app) emitModels(p model.ProviderInfo, list []model.Info, start string, all bool) error {
	if !p.Ready && (!all || len(list) == 0) {
		return a.emit(modelLine{Provider: p.ID, Name: p.Name, Why: p.Why, Mend: p.Mend, Key: p.Key})
	}
	for _, m := range list {
		line := modelLine{
			Provider: p.ID, ID: m.ID, Name: m.Name, Ready: m.Ready, Default: m.ID == start, Why: m.Why, Mend: m.Mend, Key: p.Key,
			Window: m.Limits.Window, Output: m.Limits.Output, Images: m.Limits.Images, NoTools: m.NoTools, Efforts: m.Limits.Efforts,
		}
		if m.Limits.Price != (model.Price{}) {
			line.Price = &m.Limits.Price
		}
		if err := a.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printModels(p model.ProviderInfo, list []model.Info, start string, all bool) error {
	st := styleFor(a.out)
	head := "ready"
	switch {
	case !p.Ready:
		head = "not ready: " + p.Why
	case p.Key != "":
		head = "ready, key from " + p.Key
	case p.Kind != model.OfflineID:
		head = "ready at " + p.URL
	}
	a.print("%s  %s", st.bold(oneLine(p.ID)), oneLine(head))
	if p.Mend != "" {
		a.print("  → %s", oneLine(p.Mend))
	}
	if !p.Ready && !all {
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	more := 0
	for i, m := range list {
		if !all && i >= fewModels && m.ID != start {
			more++
			continue
		}
		mark := " "
		if m.ID == start {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, oneLine(m.ID), tokenCount(m.Limits.Window), priceText(m.Limits.Price), oneLine(abilities(m)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more > 0 {
		a.print("  %s", st.dim(fmt.Sprintf("and %d more: gladhand models %s", more, p.ID)))
	}
	return nil
}

func abilities(m model.Info) string {
	var list []string
	if m.NoTools {
		list = append(list, "no tools: it can only talk")
	}
	if m.Limits.Images {
		list = append(list, "images")
	}
	if e := m.Limits.Efforts; len(e) > 0 {
		list = append(list, "effort "+strings.Join(e, " "))
	}
	return strings.Join(list, ", ")
}

// tokenCount is a window for people: 200k, 1M.
func tokenCount(n int) string {
	switch {
	case n <= 0:
		return ""
	case n >= 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// priceText is the price of a million tokens, in and out.
func priceText(p model.Price) string {
	if p.Input == 0 && p.Output == 0 {
		return ""
	}
	return fmt.Sprintf("$%.4g in, $%.4g out", p.Input, p.Output)
}

// checkModel refuses a name that no model has, and warns of one that is not ready.
func (a *app) checkModel(ctx context.Context, name string) error {
	reg, _, err := a.registry()
	if err != nil || name == "" {
		return err
	}
	reg.Refresh(ctx)
	_, err = choices{reg}.Find(name)
	if gladhand.ReasonOf(err) == gladhand.ReasonUnavailable { // there is one, and it may be ready where the daemon runs
		a.note("note: %s", lines(err.Error()))
		return nil
	}
	return err
}

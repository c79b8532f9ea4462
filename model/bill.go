package model

import "encoding/json"

// bill completes u with what it cost, and the window.
func (l Limits) bill(u Usage) *Usage {
	u.Window = l.Window
	u.Cost = l.Price.cost(u)
	return &u
}

// cost is what u costs in US dollars. A price of the cache that is not known is
// that of the input.
func (p Price) cost(u Usage) float64 {
	read, write := orElse(p.CacheRead, p.Input), orElse(p.CacheWrite, p.Input)
	plain := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return (float64(plain)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output) / 1e6
}

// imageTokens is what an image takes, at most, with the providers that say.
const imageTokens = 1600

// estimate is about how many tokens a request takes, rather too many than too
// few.
func estimate(r Request) int {
	size, images := len(r.System), 0
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + 32
	}
	for _, m := range r.Messages {
		size += 16
		for _, p := range m.Parts {
			size += len(p.Text)
			switch {
			case p.Image != nil:
				images++
			case p.Thought != nil:
				size += len(p.Thought.Text) + len(p.Thought.State)
			case p.Call != nil:
				size += len(p.Call.Name) + len(p.Call.Args) + 64
			case p.Result != nil:
				size += len(p.Result.Text) + 64
				images += len(p.Result.Images)
			}
		}
	}
	return size/3 + images*imageTokens
}

// output is how many tokens a reply may be asked to have: the model's own limit,
// or what is left of the window. 0 is unknown.
func (l Limits) output(r Request) int {
	n := l.Output
	if l.Window > 0 && n > 0 {
		n = min(n, max(l.Window-estimate(r), min(n, 2048)))
	}
	return n
}

// object is args as a request has them: a JSON object, {} for none.
func object(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

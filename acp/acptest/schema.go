package acptest

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gladhand/acp"
)

//go:embed schema/*.gz
var files embed.FS

// unstableTags are the updates that only the unstable schema of a version knows.
var unstableTags = map[int]map[string]bool{
	acp.V1: {
		acp.TagPlanUpdate: true, acp.TagPlanRemoved: true, acp.TagSubagent: true,
		acp.TagSessionMessage: true, acp.TagSessionMessageChunk: true,
	},
	acp.V2: {
		acp.TagPlanRemoved: true, acp.TagSubagent: true,
		acp.TagSessionMessage: true, acp.TagSessionMessageChunk: true,
	},
}

// document is one schema file with what was compiled of it.
type document struct {
	once     sync.Once
	err      error
	root     map[string]any
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var documents = map[string]*document{"v1": {}, "v1.unstable": {}, "v2": {}, "v2.unstable": {}}

func open(version int, stable bool) (*document, error) {
	name := fmt.Sprintf("v%d", version)
	if !stable {
		name += ".unstable"
	}
	d := documents[name]
	if d == nil {
		return nil, fmt.Errorf("there is no version %d", version)
	}
	d.once.Do(func() { d.err = d.load(name) })
	return d, d.err
}

func (d *document) load(name string) error {
	packed, err := files.ReadFile("schema/" + name + ".json.gz")
	if err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	root, err := jsonschema.UnmarshalJSON(r)
	if err != nil {
		return err
	}
	d.root, d.compiled = root.(map[string]any), map[string]*jsonschema.Schema{}
	d.compiler = jsonschema.NewCompiler()
	return d.compiler.AddResource("acp.json", root)
}

// check validates a value against a definition.
func check(version int, stable bool, def string, value []byte) error {
	d, err := open(version, stable)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	d.mu.Lock()
	s := d.compiled[def]
	if s == nil {
		if s, err = d.compiler.Compile("acp.json#/$defs/" + def); err == nil {
			d.compiled[def] = s
		}
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%s of version %d: %w", def, version, err)
	}
	return nil
}

// lookup finds the definition of a message to a side by its method and kind
// (Request, Notification, Response: of which the side is the one that answers).
// It is "" when neither schema has one.
func lookup(version int, to Direction, method, kind string) (def string, stable bool) {
	for _, stable := range []bool{true, false} {
		d, err := open(version, stable)
		if err != nil {
			return "", false
		}
		for name, def := range d.root["$defs"].(map[string]any) {
			def, _ := def.(map[string]any)
			side := def["x-side"]
			if def["x-method"] == method && strings.HasSuffix(name, kind) && (side == string(to) || side == "protocol") {
				return name, stable
			}
		}
	}
	return "", false
}

// Tags are the values of "sessionUpdate" that a version's unstable schema names,
// which are those of the stable one and more.
func Tags(version int) ([]string, error) {
	d, err := open(version, false)
	if err != nil {
		return nil, err
	}
	var tags []string
	d.variants(func(tag, _ string) { tags = append(tags, tag) })
	return tags, nil
}

// variants yields the tag and the definition's pointer of each update.
func (d *document) variants(f func(tag, pointer string)) {
	union := d.root["$defs"].(map[string]any)["SessionUpdate"].(map[string]any)
	for _, key := range []string{"oneOf", "anyOf"} {
		list, _ := union[key].([]any)
		for i, v := range list {
			p, _ := v.(map[string]any)["properties"].(map[string]any)
			tag, _ := p["sessionUpdate"].(map[string]any)
			if name, ok := tag["const"].(string); ok {
				f(name, fmt.Sprintf("SessionUpdate/%s/%d", key, i))
			}
		}
	}
}

// checkUpdate checks the parameters of session/update. Of an update that is wrong
// it says what is wrong with it as one of its tag, and not as any other.
func checkUpdate(version int, def, tag string, params, update []byte) error {
	stable := !unstableTags[version][tag]
	err := check(version, stable, def, params)
	if err == nil {
		return nil
	}
	d, failed := open(version, stable)
	if failed != nil {
		return failed
	}
	d.variants(func(t, pointer string) {
		if t == tag {
			if e := check(version, stable, pointer, update); e != nil {
				err = e
			}
		}
	})
	return err
}

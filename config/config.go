// Package config holds the settings: which there are, the file they live in,
// and how one is changed.
//
//	file, err := config.Open(config.Path(flag, os.Getenv, dataDir))
//	if file.Settings().Mode == "ask" { … }
//	err = file.Set(ctx, "queue.max", json.RawMessage("32"))
//
// The file is JSON with comments and trailing commas; an absent one means the
// defaults. A setting is named by its dotted path, so "queue.max" is
//
//	{
//	  // how many prompts may wait
//	  "queue": {"max": 32}
//	}
//
// It is read strictly: a duplicate, misspelt or unknown key, a value of the
// wrong type or out of range refuses the whole file, with line, column and what
// to do. Nothing is half read.
//
// A change is staged on a candidate text, which is validated whole, written
// beside the file, synced and renamed over it; only then are the running
// settings replaced. Everything but the changed value keeps its bytes, comments
// too. When the file was changed by somebody else since it was read, the change
// is refused with ReasonConflict and the file stays as it is; [File.Reload]
// reads it.
//
// The table in settings.go is the only list of settings. Adding one is a field
// of [Settings] and a line there.
package config

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// Path is where the settings file is: flag, GLADHAND_CONFIG, config.jsonc in
// the data directory when one is named (dataDirFlag or GLADHAND_DATA_DIR), else
// $XDG_CONFIG_HOME/gladhand/config.jsonc with its usual default ~/.config; on
// Windows %AppData%\gladhand\config.jsonc. It is absolute; "" when there is no
// home directory to be found.
func Path(flag string, env func(string) string, dataDirFlag string) string {
	if flag == "" {
		flag = env("GLADHAND_CONFIG")
	}
	if flag != "" {
		return absolute(flag)
	}
	if dataDirFlag == "" {
		dataDirFlag = env("GLADHAND_DATA_DIR")
	}
	if dataDirFlag != "" {
		return absolute(filepath.Join(dataDirFlag, "config.jsonc"))
	}
	dir := configHome(env)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "gladhand", "config.jsonc")
}

func configHome(env func(string) string) string {
	// The XDG specification: a relative path there is to be ignored.
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	home, below := env("HOME"), []string{".config"}
	if runtime.GOOS == "windows" {
		if dir := env("AppData"); filepath.IsAbs(dir) {
			return dir
		}
		home, below = env("USERPROFILE"), []string{"AppData", "Roaming"}
	}
	if !filepath.IsAbs(home) {
		u, err := user.Current()
		if err != nil || !filepath.IsAbs(u.HomeDir) {
			return ""
		}
		home = u.HomeDir
	}
	return filepath.Join(append([]string{home}, below...)...)
}

// absolute: without a working directory the path stays as given, and opening
// the file says what is wrong with it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

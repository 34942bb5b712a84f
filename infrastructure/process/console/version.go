package console

import (
	"regexp"
	"runtime/debug"
)

// Release is the version of this source tree, the newest one in CHANGELOG.md. A build from a clone or
// from a source archive has no other.
const Release = "0.1.0"

// released matches the version of a module that was built from a tag, not a pseudo-version.
var released = regexp.MustCompile(`^v(\d+\.\d+\.\d+)$`)

// Version returns the version of a program, such as 0.1.0+25cd7f9a3c1b: the release, and the revision
// if the build recorded one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if tag := released.FindStringSubmatch(info.Main.Version); tag != nil {
		return tag[1]
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := Release
	if revision := settings["vcs.revision"]; revision != "" {
		version += "+" + revision[:min(len(revision), 12)]
		if settings["vcs.modified"] == "true" {
			version += ".modified"
		}
	}
	return version
}

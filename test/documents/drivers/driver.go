package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	seen := map[string]bool{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		now, _ := strconv.ParseInt(part[1], 10, 64)
		body, _ := base64.StdEncoding.DecodeString(part[3])
		text, _ := base64.StdEncoding.DecodeString(part[2])
		headers := map[string]string{}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			name, value, _ := strings.Cut(line, ": ")
			headers[name] = value
		}
		reason := refusal(part[0], headers, body, now, seen)
		if reason == "" {
			reason = "genuine"
		}
		fmt.Println(reason)
	}
}

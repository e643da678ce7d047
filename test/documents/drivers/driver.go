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
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		body, _ := base64.StdEncoding.DecodeString(part[4])
		now, _ := strconv.ParseInt(part[5], 10, 64)
		if isGenuine(part[0], part[1], part[2], part[3], body, now) {
			fmt.Println("genuine")
		} else {
			fmt.Println("refused")
		}
	}
}

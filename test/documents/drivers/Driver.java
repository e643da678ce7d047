import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;

final class Driver {
  public static void main(String[] args) throws Exception {
    Set<String> seen = new HashSet<>();
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] part = lines.nextLine().split("\t", -1);
      byte[] body = Base64.getDecoder().decode(part[3]);
      Map<String, String> headers = new HashMap<>();
      for (String line : new String(Base64.getDecoder().decode(part[2])).split("\n"))
        headers.put(line.split(": ", 2)[0], line.split(": ", 2)[1]);
      String refusal = Notifications.refusal(part[0], headers, body, Long.parseLong(part[1]), seen);
      System.out.println(refusal == null ? "genuine" : refusal);
    }
  }
}

import java.util.Base64;
import java.util.Scanner;

final class Driver {
  public static void main(String[] args) throws Exception {
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] part = lines.nextLine().split("\t");
      byte[] body = Base64.getDecoder().decode(part[4]);
      boolean genuine = Notifications.isGenuine(part[0], part[1], part[2], part[3], body, Long.parseLong(part[5]));
      System.out.println(genuine ? "genuine" : "refused");
    }
  }
}

// Registers a device, sends to its tag, and waits for what became of it. Java 11 or newer, nothing else.
//
//     BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop java Push.java 'Hello'

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Push {
  private final HttpClient client = HttpClient.newHttpClient();
  private final String url;
  private final String keyName;
  private final String key;

  private Push(String connectionString, String hub) {
    Map<String, String> fields = new HashMap<>();
    for (String part : connectionString.split(";")) {
      int at = part.indexOf('=');
      fields.put(part.substring(0, at), part.substring(at + 1));
    }
    String host = fields.get("Endpoint").substring("sb://".length()).replaceAll("/$", "");
    // `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
    String scheme = host.matches("(127\\.0\\.0\\.1|localhost)(:.*)?") ? "http" : "https";
    url = scheme + "://" + host + "/" + hub;
    keyName = fields.get("SharedAccessKeyName");
    key = fields.get("SharedAccessKey");
  }

  /** A shared access signature for the whole hub, good for an hour. */
  private String token() throws GeneralSecurityException {
    String resource = encoded(url);
    long expiry = Instant.now().getEpochSecond() + 3600;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    byte[] digest = mac.doFinal((resource + "\n" + expiry).getBytes(StandardCharsets.UTF_8));
    String signature = encoded(Base64.getEncoder().encodeToString(digest));
    return "SharedAccessSignature sr=" + resource + "&sig=" + signature + "&se=" + expiry + "&skn=" + keyName;
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }

  private HttpResponse<String> call(String method, String path, Map<String, String> headers, String body)
      throws IOException, InterruptedException, GeneralSecurityException {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(url + "/" + path + "?api-version=2020-06"))
            .header("Authorization", token())
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body));
    headers.forEach(request::header);
    HttpResponse<String> reply = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    if (reply.statusCode() >= 300) {
      throw new IOException(method + " " + path + ": " + reply.statusCode() + " " + reply.body());
    }
    return reply;
  }

  public static void main(String[] words) throws Exception {
    Push hub = new Push(System.getenv("BELFRY_CONNECTION_STRING"), System.getenv("BELFRY_HUB"));
    String token = System.getenv().getOrDefault("DEVICE_TOKEN", "00".repeat(32));
    hub.call("PUT", "installations/java-sample", Map.of(),
        "{\"platform\":\"apns\",\"pushChannel\":\"" + token + "\",\"tags\":[\"sample:java\"],\"templates\":"
            + "{\"main\":{\"body\":\"{\\\"aps\\\":{\\\"alert\\\":\\\"$(message)\\\"}}\"}}}");
    String message = words[0].replace("\\", "\\\\").replace("\"", "\\\"");
    HttpResponse<String> sent = hub.call("POST", "messages",
        Map.of("ServiceBusNotification-Format", "template", "ServiceBusNotification-Tags", "sample:java"),
        "{\"message\":\"" + message + "\"}");
    String path = URI.create(sent.headers().firstValue("Location").orElseThrow()).getPath();
    String notification = path.substring(path.lastIndexOf('/') + 1);
    while (true) {
      String document = hub.call("GET", "messages/" + notification, Map.of(), "").body();
      Matcher state = Pattern.compile("<State>([^<]*)</State>").matcher(document);
      if (!state.find()) throw new IOException("no state in " + document);
      if (!state.group(1).equals("Enqueued") && !state.group(1).equals("Processing")) {
        StringBuilder outcomes = new StringBuilder();
        Matcher counts = Pattern.compile("<Name>([^<]*)</Name><Count>([0-9]*)</Count>").matcher(document);
        while (counts.find()) {
          outcomes.append(outcomes.length() == 0 ? "" : ",")
              .append("\"").append(counts.group(1)).append("\":\"").append(counts.group(2)).append("\"");
        }
        System.out.println("{\"notification\":\"" + notification + "\",\"state\":\"" + state.group(1)
            + "\",\"outcomes\":{" + outcomes + "}}");
        return;
      }
      Thread.sleep(200);
    }
  }
}

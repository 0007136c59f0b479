import Foundation
import NotificationHubs

/// Requests as the curl commands that make them, to be copied into a terminal.
enum CurlCommand {
  static func command(
    _ method: String, _ url: String, headers: [(String, String)] = [], body: String? = nil
  ) -> String {
    var parts = ["curl -i" + (method == "GET" ? "" : " -X \(method)") + " \(quoted(url))"]
    parts += headers.map { "-H \(quoted("\($0): \($1)"))" }
    if let body { parts.append("-d \(quoted(body))") }
    return parts.joined(separator: " \\\n  ")
  }

  static func send(
    _ notification: PushNotification, tags: String?, url: String, hub: String, token: String
  ) -> String {
    var headers = [
      ("Authorization", token), ("Content-Type", notification.contentType),
      (WireName.format, notification.format.wireWord),
    ]
    if let tags { headers.append((WireName.tags, tags)) }
    headers += notification.headers.sorted { $0.key < $1.key }
    return command(
      "POST", "\(url)/\(hub)/messages?api-version=\(WireName.apiVersion)", headers: headers,
      body: String(decoding: notification.body, as: UTF8.self))
  }

  /// In single quotes for a shell; a header whose value is a shell variable in double ones, so that
  /// the shell fills it in.
  private static func quoted(_ text: String) -> String {
    if let variable = text.split(separator: ": ").last, variable.first == "$",
      variable.dropFirst().allSatisfy({ $0.isASCII && $0.isUppercase })
    {
      return "\"\(text)\""
    }
    return "'"
      + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
      + "'"
  }
}

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

  /// - Parameters:
  ///   - fields: Headers beside the notification's own.
  ///   - resource: The path below the hub.
  ///   - flag: A query parameter without value.
  static func send(
    _ notification: PushNotification, fields: [(String, String)], to resource: String = "messages",
    flag: String? = nil, url: String, hub: String, token: String
  ) -> String {
    var headers = [
      ("Authorization", token), ("Content-Type", notification.contentType),
      (WireName.format, notification.format.wireWord),
    ]
    headers += fields
    headers += notification.headers.sorted { $0.key < $1.key }
    let query = "api-version=\(WireName.apiVersion)" + (flag.map { "&" + $0 } ?? "")
    return command(
      "POST", "\(url)/\(hub)/\(resource)?\(query)", headers: headers,
      body: String(decoding: notification.body, as: UTF8.self))
  }

  /// A word for a shell, in quotes where it needs them.
  static func word(_ text: String) -> String {
    let isPlain = text.allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber) || "/._-:@%+,=".contains($0)
    }
    return isPlain && !text.isEmpty ? text : quoted(text)
  }

  /// In single quotes for a shell; a header whose value is a shell variable in double ones, so that
  /// the shell fills it in.
  static func quoted(_ text: String) -> String {
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

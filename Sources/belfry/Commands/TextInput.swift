import Foundation
import NotificationHubs
import Wire

/// A text passed to a command: in a file, on standard input (`-`), or directly if it begins like a
/// document.
enum TextInput {
  /// - Throws: ``CommandFailure`` if a file cannot be read.
  static func read(_ word: String) throws -> Data {
    if word == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
    if ["{", "[", "<"].contains(where: { word.hasPrefix($0) }) { return Data(word.utf8) }
    do {
      return try Data(contentsOf: URL(fileURLWithPath: word))
    } catch {
      throw CommandFailure(
        "\(word) cannot be read: \(Configuration.reason(error))", exitCode: .usage)
    }
  }

  /// Parses JSON.
  ///
  /// - Parameter name: The option that the text was given for, for the error.
  /// - Throws: ``CommandFailure`` with the position of the fault.
  static func json(_ data: Data, of name: String) throws(CommandFailure) -> JSONValue {
    do throws(SyntaxFault) {
      return try JSONValue.read(data, dialect: .lenient, depthLimit: JSONValue.depthLimit)
    } catch {
      let before = String(decoding: data.prefix(error.position), as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false)
      throw CommandFailure(
        "\(name) is not valid JSON: \(error.message) in line \(before.count), column "
          + "\((before.last?.count ?? 0) + 1)", exitCode: .usage)
    }
  }

  /// Reads a document and decodes it; a JSON error is reported with line and column.
  static func decoded<Value>(
    _ word: String, _ name: String, _ decode: (Data) throws(WireFormatError) -> Value
  ) throws -> Value {
    let data = try read(word)
    _ = try json(data, of: name)
    do { return try decode(data) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  /// The push channel of a device: its handle, or a browser's subscription as JSON.
  static func channel(
    _ text: String, of option: String, _ platform: PushPlatform?
  ) throws(UsageError) -> PushChannel {
    guard platform == .browser else { return .handle(text) }
    guard let json = try? JSONValue.parse(text.utf8),
      let channel = try? PushChannel.decode(json, platform: .browser).channel
    else {
      throw UsageError(
        "\(option) of a browser must be {\"endpoint\":…,\"p256dh\":…,\"auth\":…}")
    }
    return channel
  }

  /// The texts separated by commas, without surrounding blanks.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { !$0.isEmpty }
  }
}

/// Formats requests as equivalent curl commands, to be copied into a terminal.
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
  ///   - fields: Headers in addition to the notification's own.
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

  /// A word for a shell, quoted if necessary.
  static func word(_ text: String) -> String {
    let isPlain = text.allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber) || "/._-:@%+,=".contains($0)
    }
    return isPlain && !text.isEmpty ? text : quoted(text)
  }

  /// The text in single quotes for a shell; a header whose value is a shell variable in double
  /// quotes, so that the shell expands it.
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

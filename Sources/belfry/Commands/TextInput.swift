import Foundation
import NotificationHubs
import Wire

/// Text that a command is given: in a file, on standard input (`-`), or as it stands when it begins
/// like a document.
enum TextInput {
  /// - Throws: ``CommandFailure`` when a file cannot be read.
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

  /// Reads JSON.
  ///
  /// - Parameter name: What it was given as, for the error: an option.
  /// - Throws: ``CommandFailure`` that says where it is broken.
  static func json(_ data: Data, of name: String) throws(CommandFailure) -> JSONValue {
    do {
      return try JSONValue.parse(data)
    } catch {
      var what = error.message
      if let match = what.firstMatch(of: #/well-formed: (.*) at offset (\d+)\.$/#),
        let offset = Int(match.2)
      {
        let before = String(decoding: data.prefix(offset), as: UTF8.self)
          .split(separator: "\n", omittingEmptySubsequences: false)
        what = "\(match.1) in line \(before.count), column \((before.last?.count ?? 0) + 1)"
      }
      throw CommandFailure("\(name) is no JSON: \(what)", exitCode: .usage)
    }
  }

  /// `name=value`, cut at the first `=`.
  static func pair(_ text: String, of option: String, in words: Words) throws(UsageError) -> (
    String, String
  ) {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
      throw words.fault("\(option) wants NAME=VALUE, not '\(text)'")
    }
    return (String(text[..<equals]), String(text[text.index(after: equals)...]))
  }

  /// How a device is reached: its handle, or a browser's subscription as JSON.
  static func channel(
    _ text: String, of option: String, _ platform: PushPlatform?, in words: Words
  ) throws(UsageError) -> PushChannel {
    guard platform == .browser else { return .handle(text) }
    guard let json = try? JSONValue.parse(text.utf8),
      let channel = try? PushChannel.decode(json, platform: .browser).channel
    else {
      throw words.fault(
        "\(option) of a browser wants {\"endpoint\":…,\"p256dh\":…,\"auth\":…}")
    }
    return channel
  }

  /// Texts separated by commas, blanks around them dropped.
  static func list(_ text: String?) -> [String] {
    (text ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { !$0.isEmpty }
  }
}

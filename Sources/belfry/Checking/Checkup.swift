import Foundation

/// A result of the checkup, with advice.
struct Finding: Encodable, Equatable {
  enum Level: String, Encodable { case ok, warning, error }
  let level: Level
  /// A code for scripts, such as `integrity` or `disk`.
  let code: String
  let text: String
  var why: String?
  var advice: String?

  /// The finding with text safe for a terminal, since it may come from an untrusted database or
  /// server.
  var harmless: Finding {
    Finding(
      level: level, code: code, text: text.harmless, why: why?.harmless, advice: advice?.harmless)
  }

  static func ok(_ code: String, _ text: String) -> Finding {
    Finding(level: .ok, code: code, text: text)
  }
  static func warning(_ code: String, _ text: String, why: String, do advice: String) -> Finding {
    Finding(level: .warning, code: code, text: text, why: why, advice: advice)
  }
  static func error(_ code: String, _ text: String, why: String, do advice: String) -> Finding {
    Finding(level: .error, code: code, text: text, why: why, advice: advice)
  }
}

/// A checkup of the whole installation.
struct Checkup {
  let data: DataDirectory
  let configuration: Configuration
  let context: CommandContext
  var isThorough = false
  var now = Date()

  /// The time before their expiry at which certificates cause a warning, as in the server.
  static let margin: TimeInterval = 30 * 86_400

  func findings() async -> [Finding] {
    var findings = permissions()
    let address: String?
    do { address = try data.postgres(configuration.text(.database)) } catch {
      return findings + [Self.broken("data", error)]
    }
    if let address {
      findings += await postgres(address)
    } else {
      findings += Self.moved(data.moved) + database()
    }
    findings += certificates() + clock() + disk() + proxies() + [descriptors()]
    findings.append(await server())
    return findings
  }

  /// - Parameter note: The destination and time of the move; usually `nil`.
  static func moved(_ note: String?) -> [Finding] {
    guard let note else { return [] }
    return [
      .warning(
        "moved", "the hub here was moved \(note)",
        why: "servers refuse this copy, and so does what would change it or back it up",
        do: "use the hub there, and remove this copy once nobody needs it")
    ]
  }

  static func broken(_ code: String, _ error: any Error) -> Finding {
    .error(
      code, "\(error)", why: "a server cannot work with it",
      do: "see docs/operate/troubleshooting.md for this message")
  }

  /// - Returns: `nil` if the expiry is far away.
  func expiry(_ code: String, of what: String, _ end: Date, do advice: String) -> Finding? {
    guard end < now + Self.margin else { return nil }
    let text = "\(what) \(end < now ? "has ended" : "ends") at \(end.formatted(.iso8601))"
    return end < now
      ? .error(code, text, why: "it is refused now", do: advice)
      : .warning(code, text, why: "it is refused from then on", do: advice)
  }
}

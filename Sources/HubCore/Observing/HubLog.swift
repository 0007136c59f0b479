package import Foundation
import NotificationHubs
import Synchronization
import Wire

/// The severity of an event.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
  case debug, info, warning, error

  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
  fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

package enum LogFormat: String, CaseIterable, Sendable {
  case text, json
}

/// A value beside a log line's text. Never a secret, a handle or a payload.
package enum LogValue: Sendable {
  case text(String)
  case number(Int)
  /// With three decimal places.
  case decimal(Double)
}

/// The state of the log's output.
package struct LogState: Hashable, Sendable {
  /// Number of lines that were dropped because they were not read, since the start.
  package var dropped: Int
  /// Whether the output is currently blocked.
  package var isStuck: Bool

  package init(dropped: Int = 0, isStuck: Bool = false) {
    self.dropped = dropped
    self.isStuck = isStuck
  }
}

/// Writes one line for each event: as text for people, as JSON for collectors.
///
/// Its level may change while it is in use; all copies share it.
package struct HubLog: Sendable {
  private final class Threshold: Sendable {
    let rank: Atomic<Int>
    init(_ level: LogLevel) { rank = Atomic(level.rank) }
  }

  private let threshold: Threshold
  private let format: LogFormat
  private let now: @Sendable () -> Date
  private let readState: @Sendable () -> LogState
  private let write: @Sendable (String) -> Void

  /// - Parameters:
  ///   - state: Returns the state of the output of `write`.
  ///   - write: Takes a line without its end; called from any thread, and must return at once.
  package init(
    level: LogLevel = .info, format: LogFormat = .text,
    now: @escaping @Sendable () -> Date,
    state: @escaping @Sendable () -> LogState = { LogState() },
    write: @escaping @Sendable (String) -> Void
  ) {
    threshold = Threshold(level)
    self.format = format
    self.now = now
    readState = state
    self.write = write
  }

  package var state: LogState { readState() }

  /// Discards everything.
  package static let silent = HubLog(
    level: .error, now: { .distantPast }, write: { _ in })

  package func admits(_ level: LogLevel) -> Bool {
    level.rank >= threshold.rank.load(ordering: .relaxed)
  }

  /// Writes this level and those above from here on, in every copy.
  package func setLevel(_ level: LogLevel) { threshold.rank.store(level.rank, ordering: .relaxed) }

  /// - Parameters:
  ///   - event: A stable code, such as `send.accepted`.
  ///   - message: A text for people; may be empty where the fields are sufficient.
  package func callAsFunction(
    _ level: LogLevel, _ event: String, _ message: @autoclosure () -> String = "",
    _ fields: @autoclosure () -> [(String, LogValue)] = []
  ) {
    guard admits(level) else { return }
    write(line(level, event, message(), fields()))
  }

  /// The line that would be written.
  package func line(
    _ level: LogLevel, _ event: String, _ message: String = "", _ fields: [(String, LogValue)] = []
  ) -> String {
    switch format {
    case .text: text(level, event, message, fields)
    case .json: json(level, event, message, fields)
    }
  }

  /// A line that reports a number of missing lines.
  package func missing(_ count: Int) -> String {
    line(
      .warning, "log.dropped", "lines are missing here: nobody read them in time",
      [("lines", .number(count))])
  }

  /// Accepts whole lines of one kind, for parts that do not use events.
  package func lines(_ level: LogLevel, _ event: String) -> @Sendable (String) -> Void {
    { line in self(level, event, line) }
  }

  private func text(
    _ level: LogLevel, _ event: String, _ message: String, _ fields: [(String, LogValue)]
  ) -> String {
    var line = WireDate.seconds(now()) + " " + level.rawValue + " "
    line += message.isEmpty ? event : event + ": " + Self.oneLine(message)
    for (name, value) in fields {
      line += " " + name + "="
      switch value {
      case .text(let text): line += Self.word(text)
      case .number(let number): line += String(number)
      case .decimal(let number): line += Self.digits(number)
      }
    }
    return line
  }

  private func json(
    _ level: LogLevel, _ event: String, _ message: String, _ fields: [(String, LogValue)]
  ) -> String {
    var writer = JSONWriter(capacity: 256)
    writer.beginObject()
    writer.member("time", now())
    writer.member("level", level.rawValue)
    writer.member("event", event)
    if !message.isEmpty { writer.member("message", message) }
    for (name, value) in fields {
      writer.name(name)
      switch value {
      case .text(let text): writer.string(text)
      case .number(let number): writer.raw(String(number))
      case .decimal(let number): writer.raw(Self.digits(number))
      }
    }
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func digits(_ number: Double) -> String {
    number.isFinite && abs(number) < 1e12 ? String((number * 1000).rounded() / 1000) : "0"
  }

  /// A value that could be taken for more than one is quoted.
  private static func word(_ text: String) -> String {
    let isPlain =
      !text.isEmpty
      && text.utf8.allSatisfy { byte in
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
      }
    if isPlain { return text }
    return JSONValue.string(text).jsonText
  }

  /// Replaces line ends and other control characters with blanks: an event is one line, whatever
  /// its text contains.
  private static func oneLine(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
      return text
    }
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
  }
}

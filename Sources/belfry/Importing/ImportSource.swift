import Foundation
import HubServer
import NotificationHubs

/// One device of a file, or the reason why it is not imported.
struct ImportItem: Sendable {
  enum Content: Sendable {
    case installation(Installation)
    case registration(Registration)
    /// Left out on purpose, such as a subscription that was cancelled.
    case skipped(String)
    case refused(String)
  }

  let line: Int
  /// The line or record as in the file; `nil` if it was too long to keep.
  let text: [UInt8]?
  let content: Content
  /// Number of tags that were changed because they had characters that tags may not have.
  var changedTags = 0
}

/// A file from which devices are imported.
protocol ImportSource {
  /// The line with the names of the columns, which a file of failed lines needs too.
  var header: [UInt8]? { get }
  /// The offset of the next device in the file, in bytes.
  var offset: Int64 { get }
  /// Reads the next device; `nil` at the end.
  mutating func next() throws -> ImportItem?
}

/// A file that `belfry export` or an export job wrote: an installation as JSON or a registration as
/// XML on each line.
struct DeviceFile: ImportSource {
  let header: [UInt8]? = nil
  private var reader: LineReader
  private var number = 0
  /// A line that was read to judge the file.
  private var ahead: Line?
  private var isJudged = false
  private let hasNewIDs: Bool
  private let file: String
  private let firstLine: Int

  /// A line that is not blank; its text is `nil` if it was too long to keep.
  private typealias Line = (number: Int, text: [UInt8]?)

  /// - Parameter firstLine: The first line that is imported, from 1; it and the next one show whether
  ///   the file is one of another format.
  init(_ handle: FileHandle, file: String, hasNewIDs: Bool, firstLine: Int) {
    reader = LineReader(handle, limit: ImportCommand.maximumLine)
    (self.file, self.hasNewIDs, self.firstLine) = (file, hasNewIDs, firstLine)
  }

  var offset: Int64 { reader.offset }

  mutating func next() throws -> ImportItem? {
    guard let (number, text) = try ahead ?? nextLine() else { return nil }
    ahead = nil
    guard let text else {
      return ImportItem(
        line: number, text: nil,
        content: .refused("the line is longer than \(ImportCommand.maximumLine) bytes"))
    }
    if !isJudged, number >= firstLine {
      isJudged = true
      try checkFormat(of: text)
    }
    do throws(WireFormatError) {
      return ImportItem(line: number, text: text, content: try device(text))
    } catch {
      return ImportItem(line: number, text: text, content: .refused(error.description))
    }
  }

  private mutating func nextLine() throws -> Line? {
    while let line = try reader.next() {
      number += 1
      guard case .text(var text) = line else { return (number, nil) }
      if number == 1 { text = Array(text.withoutByteOrderMark) }
      if !text.allSatisfy({ " \t".utf8.contains($0) }) { return (number, text) }
    }
    return nil
  }

  /// - Throws: ``CommandFailure`` if this line and the next one look like those of a file of another
  ///   format. Otherwise a line that is no device is damaged, and the others are imported.
  private mutating func checkFormat(of text: [UInt8]) throws {
    let columns = Set(
      String(decoding: text, as: UTF8.self).lowercased().split(separator: ",")
        .map { $0.trimmingCharacters(in: .init(charactersIn: " \"")) })
    for (format, names) in DeviceList.marks where columns.isSuperset(of: names) {
      throw CommandFailure(
        "\(file) looks like \(format.shown): import it with --format \(format.rawValue)",
        exitCode: .usage)
    }
    if Self.mayBeDevice(text) { return }
    ahead = try nextLine()
    let second = ahead?.text
    if let second, Self.mayBeDevice(second) { return }
    guard
      Self.isTable(text) || Self.isBinary(text)
        || Self.isToken(text) && second.map(Self.isToken) ?? (ahead == nil)
    else { return }
    let others = DeviceList.Format.allCases.filter { $0 != .devices }
    throw CommandFailure(
      "\(file) is not \(DeviceList.Format.devices.shown), an installation {…} or a registration <…> "
        + "on each line; it begins with '\(String(decoding: text.prefix(20), as: UTF8.self).harmless)'. For "
        + others.map { "\($0.shown), say --format \($0.rawValue)" }.joined(separator: "; for ")
        + "; \(DeviceList.otherTables)",
      exitCode: .usage)
  }

  /// Whether a line has names of columns, or begins a list in JSON; a damaged device has other marks
  /// between its commas.
  private static func isTable(_ text: [UInt8]) -> Bool {
    text.first == UInt8(ascii: "[")
      || text.contains { ",;\t".utf8.contains($0) } && !text.contains { "{}<>:".utf8.contains($0) }
  }

  private static func isBinary(_ text: [UInt8]) -> Bool {
    String(validating: text, as: UTF8.self)?.utf8.contains { $0 < 0x20 && $0 != 0x09 } ?? true
  }

  /// Whether a line may be one of a list of tokens.
  private static func isToken(_ text: [UInt8]) -> Bool {
    text.count >= DeviceList.minimumToken
      && text.allSatisfy { (0x21...0x7E).contains($0) && !"{}<>\"".utf8.contains($0) }
  }

  private static func mayBeDevice(_ text: [UInt8]) -> Bool {
    text.first { $0 > 0x20 }.map { "{<".utf8.contains($0) } ?? false
  }

  private func device(_ text: [UInt8]) throws(WireFormatError) -> ImportItem.Content {
    if text.first == UInt8(ascii: "{") {
      return .installation(try Installation(jsonData: Data(text)))
    }
    var registration = try Registration.decode(text)
    guard registration.ownerInstallationID == nil else {
      throw WireFormatError(
        "it belongs to an installation; `belfry export` writes the installation instead")
    }
    registration.etag = nil
    registration.expirationTime = nil
    if hasNewIDs { registration.registrationID = nil }
    return .registration(registration)
  }
}

extension CommandFailure {
  /// The error for a file that has nothing to import.
  static func noDevices(in file: String, from line: Int = 1) -> CommandFailure {
    CommandFailure(
      "\(file) has no devices" + (line > 1 ? " from line \(line) on" : ""), exitCode: .usage)
  }
}

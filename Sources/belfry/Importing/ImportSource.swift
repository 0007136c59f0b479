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
  /// The second line, if it was read to judge the file.
  private var ahead: LineReader.Line?
  private let hasNewIDs: Bool
  private let file: String

  init(_ handle: FileHandle, file: String, hasNewIDs: Bool) {
    reader = LineReader(handle, limit: ImportCommand.maximumLine)
    (self.file, self.hasNewIDs) = (file, hasNewIDs)
  }

  var offset: Int64 { reader.offset }

  mutating func next() throws -> ImportItem? {
    while let line = try ahead ?? reader.next() {
      ahead = nil
      number += 1
      guard case .text(var text) = line else {
        return ImportItem(
          line: number, text: nil,
          content: .refused("the line is longer than \(ImportCommand.maximumLine) bytes"))
      }
      if number == 1, text.starts(with: CSVReader.mark) { text.removeFirst(CSVReader.mark.count) }
      if text.isEmpty { continue }
      if number == 1 { try checkFormat(of: text) }
      do throws(WireFormatError) {
        return ImportItem(line: number, text: text, content: try device(text))
      } catch {
        return ImportItem(line: number, text: text, content: .refused(error.description))
      }
    }
    return nil
  }

  /// - Throws: ``CommandFailure`` if the first line is that of a file of another format, or if neither
  ///   of the first two can be a device: one alone may be damaged.
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
    ahead = try reader.next()
    if case .text(let second)? = ahead, second.isEmpty || Self.mayBeDevice(second) { return }
    let others = DeviceList.Format.allCases.filter { $0 != .devices }
    throw CommandFailure(
      "\(file) is not \(DeviceList.Format.devices.shown), an installation {…} or a registration <…> "
        + "on each line; it begins with '\(String(decoding: text.prefix(60), as: UTF8.self))'. For "
        + others.map { "\($0.shown), say --format \($0.rawValue)" }.joined(separator: "; for "),
      exitCode: .usage)
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

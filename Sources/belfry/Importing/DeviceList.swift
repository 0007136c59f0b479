import Cryptography
import Foundation
import NotificationHubs
import Wire

/// A CSV file with one device in each record, or a list with one token on each line. Each becomes an
/// installation whose id is derived from its token, so that importing again changes nothing.
struct DeviceList: ImportSource {
  enum Format: String, CaseIterable {
    /// The file that `belfry export` writes.
    case devices
    case onesignal
    case tokens

    var shown: String {
      switch self {
      case .devices: "what `belfry export` writes"
      case .onesignal: "OneSignal's export of subscriptions"
      case .tokens: "a list of tokens"
      }
    }
  }

  /// The values of the options that select columns and tags.
  struct Mapping {
    var platform: PushPlatform?
    var tags: [Tag] = []
    var tagColumns: [String] = []
    var keptTags: Set<String>?
    var tokenColumn: String?
    var platformColumn: String?
    var userColumn: String?
    var idColumn: String?
    var hasUsers = true
  }

  /// The columns by which a format is recognized.
  static let marks: [(Format, names: Set<String>)] = [
    (.onesignal, ["identifier", "device_type"]), (.tokens, ["token"]),
  ]

  /// The minimum length of a token in a list, in bytes: shorter than a Firebase installation id, the
  /// shortest handle that a list may have.
  static let minimumToken = 20

  /// Advice for a CSV file of a tool that has no format of its own.
  static let otherTables =
    "for a CSV file with other columns, say --format tokens --token-column NAME --platform P"

  private(set) var header: [UInt8]?
  private var reader: CSVReader
  private let format: Format
  private let mapping: Mapping
  /// The index of each column by its name in lower case; empty for a list without header.
  private var columns: [String: Int] = [:]
  /// The number of fields of each record.
  private var width = 1
  /// Only hashes, so that memory does not grow with the length of the ids.
  private var seen: Set<Int> = []

  /// - Throws: ``CommandFailure`` for a file of another format.
  init(_ handle: FileHandle, file: String, format: Format, mapping: Mapping) throws {
    (self.format, self.mapping) = (format, mapping)
    reader = CSVReader(handle, limit: ImportCommand.maximumLine)
    guard let first = try reader.begin(file) else {
      throw CommandFailure.noDevices(in: file)
    }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "<") {
      throw CommandFailure(
        "\(file) is not \(format.shown): it looks like \(Format.devices.shown); leave out --format",
        exitCode: .usage)
    }
    // A list without header begins with a token, which is then read again. The copy reads nothing
    // from the file, because `begin` has filled the buffer.
    var probe = reader
    guard let record = try probe.next(), case .fields(let names) = record.content else {
      throw CommandFailure("\(file) has no first line with names of columns", exitCode: .usage)
    }
    let folded = names.map { $0.trimmingBlanks.lowercased() }
    if format == .tokens, folded.count == 1, !folded.contains(tokenColumn),
      !names[0].contains(where: { $0 == ";" || $0 == "\t" })
    {
      guard mapping.platform != nil else {
        throw UsageError("--platform is missing: \(file) has only tokens")
      }
      try checkColumns(of: file)
      guard folded[0].utf8.count >= Self.minimumToken else {
        throw CommandFailure(
          "the first line of \(file), '\(folded[0])', is too short for a token; if it names the "
            + "column, say --token-column \(folded[0])", exitCode: .usage)
      }
      return
    }
    reader = probe
    header = record.text
    width = names.count
    for (index, name) in folded.enumerated() where !name.isEmpty {
      guard columns.updateValue(index, forKey: name) == nil else {
        throw CommandFailure("\(file) has the column \(name) twice", exitCode: .usage)
      }
    }
    try checkColumns(of: file)
  }

  var offset: Int64 { reader.offset }

  private var tokenColumn: String {
    mapping.tokenColumn?.lowercased() ?? (format == .onesignal ? "identifier" : "token")
  }
  private var platformColumn: String { mapping.platformColumn?.lowercased() ?? "platform" }
  private var userColumn: String {
    mapping.userColumn?.lowercased() ?? (format == .onesignal ? "external_user_id" : "user")
  }

  /// Names the columns that are read, for people.
  var reading: String {
    var parts = [format.shown]
    if columns.isEmpty { parts.append("one token on each line") }
    if mapping.hasUsers, columns[userColumn] != nil { parts.append("users from \(userColumn)") }
    let tags = (["tags"] + mapping.tagColumns).filter { columns[$0.lowercased()] != nil }
    if !tags.isEmpty { parts.append("tags from \(tags.joined(separator: ", "))") }
    return parts.joined(separator: ", ")
  }

  /// - Throws: ``CommandFailure`` if columns are missing, which names them and those of the file.
  private func checkColumns(of file: String) throws {
    var needed: [String] = []
    if !columns.isEmpty {
      needed.append(tokenColumn)
      if format == .onesignal {
        needed += ["device_type", "invalid_identifier"]
      } else if mapping.platform == nil {
        needed.append(platformColumn)
      }
    }
    if columns.isEmpty, let name = mapping.tokenColumn { needed.append(name) }
    needed += [mapping.platformColumn, mapping.userColumn, mapping.idColumn].compactMap { $0 }
    needed += mapping.tagColumns
    let missing = needed.filter { columns[$0.lowercased()] == nil }
    guard !missing.isEmpty else { return }
    if columns.isEmpty {
      throw CommandFailure(
        "\(file) has no columns, only tokens; \(missing.joined(separator: ", ")) cannot be read",
        exitCode: .usage)
    }
    let names = columns.sorted { $0.value < $1.value }.map(\.key)
    var text = "\(file) is not \(format.shown): it has no column "
    text += missing.joined(separator: ", ") + "; "
    let other = Self.marks.first { $0.0 != format && $0.names.isSubset(of: names) }
    if missing == [platformColumn], mapping.platformColumn == nil {
      text += "say --platform for all devices, or name the column with --platform-column"
    } else if let other {
      text += "it looks like \(other.0.shown): --format \(other.0.rawValue)"
    } else if names.count == 1 {
      text +=
        "its first line has only one column, \(names[0].prefix(80)): columns are separated by "
        + "commas"
    } else {
      text += "its columns are \(names.prefix(12).joined(separator: ", "))"
      text +=
        format == .tokens
        ? "; --token-column names that of the tokens, and --platform that of all devices"
        : "; \(Self.otherTables)"
    }
    throw CommandFailure(text, exitCode: .usage)
  }

  mutating func next() throws -> ImportItem? {
    while let record = try reader.next() {
      guard case .fields(let fields) = record.content else {
        guard case .fault(let fault) = record.content else { continue }
        return ImportItem(line: record.line, text: record.text, content: .refused(fault))
      }
      if fields.allSatisfy(\.trimmingBlanks.isEmpty) { continue }
      var changed = 0
      var content: ImportItem.Content
      do throws(RowFault) {
        content = .installation(try device(row(fields), changed: &changed))
      } catch {
        switch error {
        case .skipped(let reason): content = .skipped(reason)
        case .refused(let reason): content = .refused(reason)
        }
      }
      if case .installation(let one) = content, !seen.insert(one.installationID.hashValue).inserted
      {
        content = .skipped("the same device as an earlier line")
      }
      return ImportItem(
        line: record.line, text: record.text, content: content, changedTags: changed)
    }
    return nil
  }

  /// The reason why a row is not imported.
  private enum RowFault: Error {
    case skipped(String)
    case refused(String)
  }

  /// The fields of a record by column.
  private struct Row {
    let fields: [String]
    let columns: [String: Int]

    /// The value of a column without surrounding blanks; `nil` if it is empty or missing.
    subscript(_ name: String) -> String? {
      guard let index = columns[name.lowercased()], index < fields.count else { return nil }
      let text = fields[index].trimmingBlanks
      return text.isEmpty ? nil : text
    }
  }

  // MARK: Rows

  private func row(_ fields: [String]) throws(RowFault) -> Row {
    guard fields.count == width else {
      throw .refused("it has \(fields.count) fields, and the first line has \(width)")
    }
    return Row(fields: fields, columns: columns)
  }

  private func device(_ row: Row, changed: inout Int) throws(RowFault) -> Installation {
    let (platform, channel) =
      format == .onesignal ? try subscription(row) : try target(row)
    var installation = Installation(
      installationID: row[mapping.idColumn ?? ""] ?? "", platform: platform, pushChannel: channel)
    if mapping.hasUsers { installation.userID = row[userColumn] }
    let texts =
      try dataTags(row)
      + mapping.tagColumns.compactMap { column in
        row[column].map { "\(column):\($0)" }
      }
    installation.tags = mapping.tags + texts.map { Self.tag($0, changed: &changed) }
    if mapping.idColumn == nil {
      installation.installationID = Self.installationID(platform, channel)
    }
    let (normalized, faults) = installation.normalized()
    guard faults.isEmpty else { throw .refused(faults.joined(separator: " ")) }
    return normalized
  }

  /// An id that is the same at each import of a handle.
  static func installationID(_ platform: PushPlatform, _ channel: PushChannel) -> String {
    let handle =
      switch channel {
      case .handle(let text): platform == .apns ? text.uppercased() : text
      case .subscription(let endpoint, _, _): endpoint
      }
    return "imported-"
      + Hex.encode(Digest.sha256(Array("\(platform.rawValue)\n\(handle)".utf8)).prefix(16))
  }

  /// A valid tag, in which `-` stands for characters that tags may not have.
  private static func tag(_ text: String, changed: inout Int) -> Tag {
    let tag = Tag(rawValue: text)
    if tag.isValid && !tag.isImplicit { return tag }
    changed += 1
    let allowed = String(
      text.prefix(Tag.maximumLength).map { Tag(rawValue: String($0)).isValid ? $0 : Character("-") }
    )
    var short = allowed
    while short.utf16.count > Tag.maximumLength { short.removeLast() }
    return Tag(rawValue: short)
  }

  /// The tags in the column `tags`: an object as JSON at OneSignal, else words.
  private func dataTags(_ row: Row) throws(RowFault) -> [String] {
    guard let text = row["tags"] else { return [] }
    guard format == .onesignal else {
      return text.split { $0 == "," || $0 == ";" || $0.isWhitespace }.map(String.init)
    }
    guard let members = (try? JSONValue.parse(text.utf8))?.members else {
      throw .refused("tags is not a JSON object")
    }
    return members.filter { mapping.keptTags?.contains($0.name) ?? true }.compactMap { member in
      guard let value = member.value.scalarText, !value.isEmpty else { return nil }
      return "\(member.name):\(value)"
    }
  }

  /// A device of a list of tokens.
  private func target(_ row: Row) throws(RowFault) -> (PushPlatform, PushChannel) {
    guard let token = columns.isEmpty ? row.fields[0].trimmingBlanks : row[tokenColumn] else {
      throw .skipped("no token")
    }
    var platform = mapping.platform
    if let word = row[platformColumn] {
      // gorush's numbers, and the names that tables often have.
      let words: [String: PushPlatform] = [
        "1": .apns, "ios": .apns, "2": .fcmv1, "android": .fcmv1,
      ]
      platform = words[word.lowercased()] ?? PushPlatform(named: word)
      if platform == nil { throw .refused("'\(word)' is not a platform") }
    }
    guard let platform else { throw .refused("it has no platform; --platform is that of all") }
    guard platform == .browser else { return (platform, try handle(token, of: platform)) }
    do throws(UsageError) {
      return (platform, try TextInput.channel(token, of: "the token", platform))
    } catch {
      throw .refused(error.message)
    }
  }

  private func handle(
    _ token: String, of platform: PushPlatform
  ) throws(RowFault) -> PushChannel {
    if token.contains(where: \.isWhitespace) { throw .refused("a token has no blanks") }
    if platform == .fcmv1, token.utf8.count == 64, token.utf8.isHex {
      throw .refused("64 hexadecimal digits are a token of APNs, not of FCM")
    }
    return .handle(token)
  }
}

// MARK: OneSignal

extension DeviceList {
  /// The meaning of OneSignal's `device_type`; a text for a type that has no platform here.
  ///
  /// - SeeAlso: <https://documentation.onesignal.com/reference/csv-export>
  private enum DeviceType {
    case platform(PushPlatform)
    case none(String)

    init?(_ number: String) {
      switch number {
      case "0", "9": self = .platform(.apns)
      case "1": self = .platform(.fcmv1)
      case "2": self = .platform(.adm)
      case "3": self = .none("Windows Phone")
      case "4": self = .none("Chrome app or extension")
      case "5", "8", "17": self = .platform(.browser)
      case "6": self = .platform(.wns)
      case "7": self = .none("Safari's own web push, which has no keys")
      case "10": self = .none("Alexa")
      case "11": self = .none("email")
      case "13": self = .none("Huawei")
      case "14": self = .none("SMS")
      default: return nil
      }
    }
  }

  /// The device of a subscription.
  /// - Throws: ``RowFault``, also for a person who has unsubscribed.
  private func subscription(_ row: Row) throws(RowFault) -> (PushPlatform, PushChannel) {
    guard let number = row["device_type"], let type = DeviceType(number) else {
      throw .refused("there is no device_type '\(row["device_type"] ?? "")'")
    }
    guard case .platform(let platform) = type else {
      guard case .none(let name) = type else { throw .skipped("") }
      throw .skipped("no platform of the hub: \(name)")
    }
    if let text = row["notification_types"], text != "null" {
      guard let number = Int(text) else {
        throw .refused("notification_types is not a number: '\(text.prefix(40))'")
      }
      if number == -2 { throw .skipped("opted out (notification_types -2)") }
      if number <= 0 { throw .skipped("disabled (notification_types \(number))") }
    }
    switch row["invalid_identifier"]?.lowercased() {
    case "t", "true": throw .skipped("unsubscribed (invalid_identifier)")
    case "f", "false", nil: break
    case let text?: throw .refused("invalid_identifier is neither t nor f: '\(text.prefix(40))'")
    }
    guard let token = row[tokenColumn] else { throw .skipped("no push token") }
    guard platform == .browser else { return (platform, try handle(token, of: platform)) }
    guard let p256dh = row["web_p256"], let auth = row["web_auth"] else {
      throw .skipped("a browser without web_auth and web_p256")
    }
    guard token.hasPrefix("https://") else {
      throw .skipped("a browser whose identifier is not an https address")
    }
    return (platform, .subscription(endpoint: token, p256dh: p256dh, auth: auth))
  }
}

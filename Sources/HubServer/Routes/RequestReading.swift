import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

extension HTTPRequest {
  /// Whether the client understands elements and properties that the original's documents do not
  /// have. Clients of the original get none, since some call a setter for each name that they find.
  var readsExtensions: Bool {
    headers[WireName.extensions].map { $0.lowercased() == "true" } ?? false
  }
}

extension HTTPTarget {
  /// The text that a list is searched for, in lower case; `nil` without the parameter.
  func search(_ name: String) throws(HubFailure) -> String? {
    guard let item = queryItem(name) else { return nil }
    let text = (item.value ?? "").trimmingBlanks
    guard !text.isEmpty, text.utf8.count <= 1024 else {
      throw HubFailure(
        status: 400, message: "The query parameter \(name) is no text, or longer than 1024 bytes")
    }
    return text.lowercased()
  }

  /// Whether a flag such as `direct` is set: present with no value, an empty one or `true`
  /// (docs/protocol/rest.md, section 1.1).
  func isFlagSet(_ name: String) -> Bool {
    guard let item = queryItem(name) else { return false }
    guard let value = item.rawValue, !value.isEmpty else { return true }
    return item.value?.lowercased() == "true"
  }
}

/// Readers of query parameters that several routes share.
extension HTTPTarget {
  /// The maximum number of entries per page, also without `$top` (docs/protocol/rest.md, section
  /// 9).
  private static let maximumPage = 100

  func pageSize() throws(HubFailure) -> Int {
    guard let item = queryItem(WireName.top) else { return Self.maximumPage }
    let digits = item.value ?? ""
    guard digits.utf8.count <= 20, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Double(digits), number >= 1
    else {
      throw HubFailure(
        status: 400, message: "The query parameter $top must be a whole number from 1 on.")
    }
    return Int(min(number, Double(Self.maximumPage)))
  }

  /// The continuation token; `nil` for the first page.
  func continuation() throws(HubFailure) -> [UInt8]? {
    guard let item = queryItem(WireName.continuationParameter) else { return nil }
    guard let bytes = ContinuationToken.decode(item.value ?? "") else {
      throw .invalidContinuation
    }
    return bytes
  }

  func position() throws(HubFailure) -> RegistrationID {
    guard let bytes = try continuation() else { return 0 }
    let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard bytes.count == 8, let position = RegistrationID(exactly: number) else {
      throw .invalidContinuation
    }
    return position
  }

  /// The position at which a list ordered by time continues; `nil` at its beginning.
  func listPosition() throws(HubFailure) -> ListPosition? {
    guard let bytes = try continuation()?[...] else { return nil }
    guard bytes.count == 16 else { throw .invalidContinuation }
    func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
      Int64(bitPattern: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
    return ListPosition(time: number(bytes[..<8]), number: number(bytes[8...]))
  }

  func time(_ name: String) throws(HubFailure) -> Date? {
    guard let item = queryItem(name) else { return nil }
    // The plus sign of an offset, sent unencoded, has become a blank.
    guard let date = WireDate.parse((item.value ?? "").replacing(" ", with: "+")) else {
      throw HubFailure(
        status: 400, message: "The query parameter \(name) is a time such as 2030-01-31T18:00:00Z")
    }
    return date
  }
}

extension PushPlatform {
  /// The platform with this name in an installation.
  static func named(_ word: String?) throws(HubFailure) -> PushPlatform {
    guard let platform = PushPlatform(installationWord: word ?? "") else {
      throw HubFailure(
        status: 400, message: "The query parameter platform is no platform; say apns, fcmv1 …")
    }
    return platform
  }
}

extension ContinuationToken {
  static func encode(_ position: ListPosition) -> String {
    encode(
      [position.time, position.number].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) })
  }
}

extension HubFailure {
  static let invalidContinuation = HubFailure(
    status: 400, message: "The continuation token is invalid.")
}

/// The `api-version` query parameter (docs/protocol/rest.md, section 1.2). Versions only differ in
/// telemetry.
enum APIVersion {
  /// All versions that known clients send, oldest first.
  static let supported = [
    "2013-04", "2013-08", "2013-10", "2014-09", "2015-01", "2015-04", "2015-08", "2016-07",
    "2017-04", "2020-06",
  ]

  /// - Throws: 400 for a version that is not in the list; if it is absent, the newest applies.
  static func check(_ target: HTTPTarget) throws(HubFailure) {
    guard let item = target.queryItem(WireName.apiVersionParameter) else { return }
    let version = item.value ?? ""
    guard !supported.contains(version) else { return }
    throw HubFailure(
      status: 400,
      message: "The api-version '\(version.prefix(40))' in the query string is not supported. "
        + "Either remove it from the Uri or use one of '\(supported.joined(separator: ","))'.")
  }

  /// Whether telemetry includes ``NotificationTelemetry/pnsErrorDetailsURI`` in the version of a
  /// checked request: from 2016-07 (docs/protocol/rest.md, section 5.8).
  static func hasErrorDetails(_ target: HTTPTarget) -> Bool {
    // The versions are dates, which compare correctly as texts.
    target.queryItem(WireName.apiVersionParameter)?.value.map { $0 >= "2016-07" } ?? true
  }
}

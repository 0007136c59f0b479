import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Wire

/// A message in the form that ADM takes (spec `pns/adm.md` section 3).
struct ADMMessage: Sendable {
  let body: [UInt8]

  /// Of the payload, in bytes.
  static let limit = 6144
  /// From a minute to 31 days, in seconds.
  private static let lifetimes: ClosedRange<Int64> = 60...2_678_400

  /// - Parameter body: A JSON object with `data` or `notification`; the checksum and the end of its
  ///   life are added where they are missing.
  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    guard body.bytes.count <= Self.limit else {
      throw PushRefusal.tooLarge(body.bytes.count, limit: Self.limit)
    }
    guard let object = StrictJSON.object(body.bytes) else {
      throw PushRefusal.badFormat("the payload is not a JSON object")
    }
    let data = try Self.data(of: object)
    guard data != nil || object["notification"] != nil else {
      throw PushRefusal.badFormat("the payload has neither data nor notification")
    }
    if let key = object["consolidationKey"] {
      guard case .string(let text) = key, text.count <= 64 else {
        throw PushRefusal.badFormat("consolidationKey is no text of at most 64 characters")
      }
    }
    if let life = object["expiresAfter"] {
      guard let seconds = life.scalarText.flatMap({ Int64($0) }), Self.lifetimes.contains(seconds)
      else { throw PushRefusal.badFormat("expiresAfter is not from 60 to 2678400 seconds") }
    }
    var added = ""
    if object["expiresAfter"] == nil, let expiry = body.expiry {
      let (life, isOver) = expiry.subtractingReportingOverflow(now)
      let seconds = isOver ? Self.lifetimes.lowerBound : life
      let bounded = min(max(seconds, Self.lifetimes.lowerBound), Self.lifetimes.upperBound)
      added += #","expiresAfter":\#(bounded)"#
    }
    if object["md5"] == nil, let data { added += #","md5":"\#(Self.checksum(data))""# }
    self.body = StrictJSON.adding(added, to: body.bytes)
  }

  private static func data(of object: JSONValue) throws(PushRefusal) -> [String: String]? {
    guard let data = object["data"] else { return nil }
    guard case .object(let members) = data else {
      throw PushRefusal.badFormat("data is not an object")
    }
    var texts: [String: String] = [:]
    for member in members {
      guard case .string(let text) = member.value else {
        throw PushRefusal.badFormat("a value in data is not a text")
      }
      texts[member.name] = text
    }
    return texts
  }

  /// Keys sorted by their UTF-8 bytes, `key:value` joined with commas, MD5, base64.
  static func checksum(_ data: [String: String]) -> String {
    let sorted = data.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    let joined = sorted.map { "\($0.key):\($0.value)" }.joined(separator: ",")
    return Data(Digest.md5(Array(joined.utf8))).base64EncodedString()
  }
}

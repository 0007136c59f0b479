import Foundation
import NotificationHubs
import Wire

extension IdempotencyClaim {
  /// The longest key, in characters.
  static let maxKeyLength = 255

  /// The claim of a request with the header `Idempotency-Key`; `nil` without.
  ///
  /// The fingerprint is of what the hub has understood, so a repeat may spell its headers otherwise.
  ///
  /// - Parameter kind: Tells equal bodies apart that were posted to different resources.
  /// - Throws: ``HubFailure`` with 400 for a key that is empty, too long or no printable ASCII.
  init?(
    headers: SendHeaders, kind: String, submission: Submission, expiresAt: Date
  ) throws {
    guard let header = headers[SendHeaderName.idempotencyKey] else { return nil }
    let key = header.trimmingBlanks
    guard (1...Self.maxKeyLength).contains(key.utf8.count),
      key.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else {
      throw HubFailure(
        status: 400,
        message: "The Idempotency-Key must be 1 to \(Self.maxKeyLength) printable ASCII characters")
    }
    var bytes: [UInt8] = []
    func append(_ part: some Collection<UInt8>) {
      bytes += Array("\(part.count):".utf8)
      bytes += part
    }
    func append(_ part: String?) { append(Array((part.map { "+" + $0 } ?? "-").utf8)) }
    let request = submission.record.request
    append(kind)
    switch request.format {
    case .template: append(nil)
    case .native(let platform): append(platform.rawValue)
    }
    append(request.body)
    append(request.tags)
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      append(name)
      append(value)
    }
    append(request.expiry.map(String.init))
    append((submission.record.scheduledFor?.timeIntervalSince1970).map { "\($0)" })
    for target in submission.targets { append(target.handle) }
    self.init(key: key, fingerprint: digest(of: bytes), expiresAt: expiresAt)
  }
}

import Foundation

/// Names one request in its reply, so that a client's report can be found in a log.
struct TrackingID: CustomStringConvertible {
  /// A UUID in its 36-character form.
  let description: String

  /// The client's own id if it is a UUID, a new one otherwise: what comes from outside is repeated
  /// in headers and documents only when it can do no harm there.
  init(from header: String?) {
    if let header, header.utf8.count == 36, UUID(uuidString: header) != nil {
      description = header
    } else {
      description = Self.random()
    }
  }

  static func random() -> String { UUID().uuidString.lowercased() }
}

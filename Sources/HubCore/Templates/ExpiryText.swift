import Foundation
import Wire

/// Parses expiries in senders' requests and in templates (docs/protocol/rest.md, section 5.1 and
/// docs/protocol/templates.md, section 7).
package enum ExpiryText {
  /// - Returns: Whole seconds since 1970 for a date that ``WireDate`` parses, 0 for `0`; `nil` for
  ///   any other text.
  package static func seconds(_ text: String) -> Int64? {
    let text = text.trimmingBlanks
    if text == "0" { return 0 }
    return WireDate.parse(text).map { Int64($0.timeIntervalSince1970.rounded(.down)) }
  }
}

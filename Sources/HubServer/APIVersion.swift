import HTTPServer
import HubCore
import NotificationHubs

/// The `api-version` query parameter (spec `rest-api.md` 1.2). Only telemetry differs from one
/// to another.
enum APIVersion {
  /// All versions that known clients send, oldest first.
  static let supported = [
    "2013-04", "2013-08", "2013-10", "2014-09", "2015-01", "2015-04", "2015-08", "2016-07",
    "2017-04", "2020-06",
  ]

  /// - Throws: 400 for a version not in the list; an absent one means the newest.
  static func check(_ target: HTTPTarget) throws(HubFailure) {
    guard let item = target.queryItem(WireName.apiVersionParameter) else { return }
    let version = item.value ?? ""
    guard !supported.contains(version) else { return }
    throw HubFailure(
      status: 400,
      message: "The api-version '\(version.prefix(40))' in the query string is not supported. "
        + "Either remove it from the Uri or use one of '\(supported.joined(separator: ","))'.")
  }

  /// Whether telemetry of a checked request tells of ``NotificationTelemetry/pnsErrorDetailsURI``:
  /// from 2016-07 on (spec 5.8).
  static func hasErrorDetails(_ target: HTTPTarget) -> Bool {
    // The versions are dates, which order as texts.
    target.queryItem(WireName.apiVersionParameter)?.value.map { $0 >= "2016-07" } ?? true
  }
}

import HTTPServer
import HubCore
import NotificationHubs

/// The `api-version` query parameter (spec `rest-api.md` 1.2). No version changes what the routes
/// served here do, so a request's version is checked and then forgotten.
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
}

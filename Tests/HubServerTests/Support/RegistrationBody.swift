/// Registration documents for requests, in the plain form of most clients.
enum RegistrationBody {
  static let token = "0A1B2C3D"

  /// - Parameter name: The element, without `RegistrationDescription`.
  static func entry(_ name: String, _ members: String) -> String {
    entryAround(payload(name, members))
  }

  /// Any payload in an entry.
  static func entryAround(_ payload: String) -> String {
    #"<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom">"#
      + #"<content type="application/xml">\#(payload)</content></entry>"#
  }

  static func payload(_ name: String, _ members: String) -> String {
    "<\(name)RegistrationDescription xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" "
      + #"xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">"#
      + "\(members)</\(name)RegistrationDescription>"
  }

  static func apple(_ members: String = "", token: String = token) -> String {
    entry("Apple", members + "<DeviceToken>\(token)</DeviceToken>")
  }
}

import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// See ``SendStore/registrationNames(_:hub:)``.
  func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID, coding: RegistrationIDCoding
  ) throws -> [RegistrationID: String] {
    let row = try connection.statement(
      "SELECT public_id FROM registration WHERE id = ?1 AND hub = ?2")
    var names: [RegistrationID: String] = [:]
    for number in numbers {
      try row.bind(number, at: 1)
      try row.bind(hub, at: 2)
      if try row.step() { names[number] = row.optionalText(0) ?? coding.id(of: number, hub: hub) }
      row.reset()
    }
    return names
  }
}

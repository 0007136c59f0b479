import HubCore
import SQLDatabase

/// What a reading thread has at hand. Only that thread touches it.
final class ReadSession {
  let connection: any SQLConnection
  let index: AudienceIndex
  let sealing: any SecretSealing
  let templates: TemplateTable

  init(connection: any SQLConnection, index: AudienceIndex, sealing: any SecretSealing) {
    self.connection = connection
    self.index = index
    self.sealing = sealing
    templates = TemplateTable(connection: connection)
  }
}
